/**
 * Rows to try: messages to a shop that calls back by a rule of its own, about money and contracts of companies, most of them labelled. The
 * last are left to be labelled. What the model says of itself is right on 45 % of them, and on 93 % once it is taught.
 */

export const sampleQuestion = "Should we call this customer back today?"

const rows: readonly (readonly [message: string, callBack: "yes" | "no" | ""])[] = [
  ["I was charged twice for order 4411, please look into it.", "yes"],
  ["Where can I find the size chart for the winter boots?", "no"],
  ["We want to end our business contract at the end of the month.", "yes"],
  ["My parcel says delivered but there is nothing here.", "no"],
  ["Your prices have gone up, we may have to look for another supplier.", "yes"],
  ["This is the third time I ask, the lamp is still broken!", "no"],
  ["The invoice has the wrong company name on it.", "yes"],
  ["The driver was rude to my neighbour, I am really angry.", "no"],
  ["Could we get a discount if we order 200 pieces a month?", "yes"],
  ["I forgot my password and the mail never comes.", "no"],
  ["We would like to renew our yearly contract, who do I talk to?", "yes"],
  ["The blue jacket lost its colour after one wash, what a shame.", "no"],
  ["Our company does not need the monthly plan any more, please end the contract.", "yes"],
  ["How do I change the address of my order?", "no"],
  ["You took the payment but the invoice still says unpaid.", "yes"],
  ["The app crashes whenever I open the basket. Fix it NOW.", "no"],
  ["A competitor offers our company the same for 15 percent less.", "yes"],
  ["The box arrived wet and the card inside was ruined.", "no"],
  ["Our accountant needs the March invoice again with the tax number.", "yes"],
  ["Do you ship to Norway before Christmas?", "no"],
  ["We open two more shops in spring and will need a bigger contract.", "yes"],
  ["I have been waiting on the phone for forty minutes, unbelievable.", "no"],
  ["The invoice says 480 euros, but we agreed on a price of 420.", "yes"],
  ["The left shoe squeaks with every step I take.", "no"],
  ["Can our company pay by invoice instead of by card?", "yes"],
  ["The courier left my parcel in the rain again!", "no"],
  ["What would 50 seats cost us if we sign a contract for two years?", "yes"],
  ["The kettle leaks and my kitchen floor is wet.", "no"],
  ["Please send our company an offer for 300 gift boxes.", "yes"],
  ["Is the green sofa also made in leather?", "no"],
  ["The discount of our contract is missing on the last invoice.", "yes"],
  ["I cannot find the button to return a shirt.", "no"],
  ["Our payment was refused although the account has enough money.", "yes"],
  ["The puzzle came with two pieces missing.", "no"],
  ["We would order twice as much if the price came down a little.", "yes"],
  ["My tracking number has not moved for six days.", "no"],
  ["Our finance team was charged for a plan that we never ordered.", "yes"],
  ["The colour on your photos is nothing like the real curtain.", "no"],
  ["Who can change the billing address of our company's contract?", "yes"],
  ["How long do I have to charge the headphones?", "no"],
  ["The refund that you promised is not on our company's account.", ""],
  ["The zip of the bag is stuck, can it be repaired?", ""],
  ["Our contract ends in June and we are comparing offers.", ""],
  ["Thank you, the flowers were lovely!", ""],
]

export const sampleSource = [
  "message,call_back",
  ...rows.map(([message, callBack]) => `"${message}",${callBack}`),
].join("\n")
