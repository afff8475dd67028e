/** Rows to try: messages to a shop that calls back by a rule of its own, most of them labelled. The last are left to be labelled. */

export const sampleQuestion = "Should we call this customer back today?"

const rows: readonly (readonly [message: string, callBack: "yes" | "no" | ""])[] = [
  ["I was charged twice for order 4411, please look into it.", "yes"],
  ["Where can I find the size chart for the winter boots?", "no"],
  ["I want to close my business account at the end of the month.", "yes"],
  ["My parcel says delivered but there is nothing here.", "no"],
  ["Your prices have gone up, we may have to look for another supplier.", "yes"],
  ["This is the third time I ask, the lamp is still broken!", "no"],
  ["The invoice has the wrong company name on it.", "yes"],
  ["The driver was rude to my neighbour, I am really angry.", "no"],
  ["Could we get a discount if we order 200 pieces a month?", "yes"],
  ["I forgot my password and the mail never comes.", "no"],
  ["We would like to renew our yearly contract, who do I talk to?", "yes"],
  ["The blue jacket lost its colour after one wash, what a shame.", "no"],
  ["Please stop the monthly plan, we do not need it any more.", "yes"],
  ["How do I change the address of my order?", "no"],
  ["You took the payment but the order shows as unpaid.", "yes"],
  ["The app crashes whenever I open the basket. Fix it NOW.", "no"],
  ["A competitor offers us the same for 15 percent less.", "yes"],
  ["The box arrived wet and the card inside was ruined.", "no"],
  ["Our accountant needs the March invoice again with the tax number.", "yes"],
  ["Do you ship to Norway before Christmas?", "no"],
  ["We open two more shops in spring and will need a bigger plan.", "yes"],
  ["I have been waiting on the phone for forty minutes, unbelievable.", "no"],
  ["The refund that you promised is not on my account.", ""],
  ["The zip of the bag is stuck, can it be repaired?", ""],
  ["Our contract ends in June and we are comparing offers.", ""],
  ["Thank you, the flowers were lovely!", ""],
]

export const sampleSource = [
  "message,call_back",
  ...rows.map(([message, callBack]) => `"${message}",${callBack}`),
].join("\n")
