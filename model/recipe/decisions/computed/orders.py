"""Changed orders and corrections; polite refusals."""
from .world import Choose, Draw, Rate, Situation, ask, cap, situation, worlds

DISHES = "lentil soup,mushroom pie,grilled trout,cheese plate,potato salad,apple tart,fish stew,vegetable curry,onion soup,spinach pancake".split(",")


@situation(
    "changed orders", "home",
    "{name}: \"{n} portions of {a}, please. {change}\"",
    "{name} ordered {n} portions of {a}. A minute later: \"{change}\"",
    "Order slip, table of {name}: {n} x {a}. Added by hand: \"{change}\"",
    "{name} rang to order {n} portions of {a} and then said, \"{change}\"",
    "Message from {name}: {n} portions of {a} for noon. {change}",
    "\"We would like {n} portions of {a},\" wrote {name}. \"{change}\"",
    "{name} began with {n} portions of {a}. The next message read: {change}",
    "Two notes from {name}. First: {n} portions of {a}. Second: {change}",
)
def portions(d: Draw) -> Situation:
    a, b = d.sample(DISHES, 2)
    name, n = d.name(), d.randrange(2, 9)
    up, down = n + d.randrange(1, 4), n - 1
    w = d.number
    base = {"name": name, "a": a, "b": b, "A": cap(a), "B": cap(b), "n": w(n), "num": n}
    changes = [
        (f"Make that {w(up)} instead.", up, 0), (f"Sorry, {w(down)}, not {w(n)}.", down, 0), (f"No, wait, {b} instead, the same number.", 0, n), ("That stays as it is.", n, 0),
        (f"And one portion of {b} on top.", n, 1), ("Actually, forget the whole order.", 0, 0), (f"One of them as {b}, if you can.", n - 1, 1), (f"On second thoughts, {w(up)} of them.", up, 0),
    ]
    states = worlds(base, [{"change": text, "x": x, "y": y} for text, x, y in d.sample(changes, 5)])
    return Situation(
        f"{name}'s order", states,
        [
            ask(lambda s: s["x"] == n, "In the end, does {name} want exactly {n} portions of {a}?", no=("The final number of portions of {a} is not {n}.",)),
            ask(lambda s: s["x"] > n, "Did {name} raise the number of portions of {a}?", no=("{name} wants no more portions of {a} than at first.",)),
            ask(lambda s: s["y"] > 0, "Should the kitchen prepare any {b} for {name}?", "{B} is part of the final order.", no=("The final order of {name} is without {b}.",)),
            ask(lambda s: s["x"] > 0, "Is {a} still wanted?", no=("No {a} should be made for {name}.",)),
            ask(lambda s: s["x"] + s["y"] == 0, "Has {name} called the order off?", no=("There is still something to prepare for {name}.",)),
            ask(lambda s: True, "Did {name} first ask for {a}?", no=("{name} never asked for {a}.",)),
        ],
        [Choose(("How many portions of {a} does {name} want in the end?", "Portions of {a} to prepare for {name}:"), [str(k) for k in dict.fromkeys((0, n - 1, n, up))], lambda s: str(s["x"]))],
        unsaid=("Has {name} paid yet?", "Does {name} eat meat?"),
    )


@situation(
    "changed orders", "work",
    "{name} asked for {a}, {b} and {c}. {change}",
    "Basket of {name}: {a}, {b}, {c}. Later message: {change}",
    "Order {code} from {name} lists {a}, {b} and {c}. Note from the phone: {change}",
    "{name} wrote first: \"{A}, {b} and {c}, please.\" Then: \"{change}\"",
    "Please pack {a}, {b} and {c} for {name}. {change}",
    "In the morning {name} wanted {a}, {b} and {c}. In the afternoon came the line \"{change}\"",
    "For {name}: {a}, {b}, {c}. PS: {change}",
    "{name} sent a list ({a}, {b}, {c}) and then one more line: {change}",
)
def list_change(d: Draw) -> Situation:
    a, b, c, e = d.sample(("envelopes", "staples", "a stapler", "blue folders", "a calendar", "index cards", "glue", "a ruler", "pencils", "labels", "a lamp"), 4)
    name, code = d.name(), d.code()
    base = {"name": name, "code": code, "a": a, "A": cap(a), "b": b, "c": c, "e": e, "B": cap(b), "E": cap(e)}
    full = {a, b, c}
    changes = [(f"Leave out the {b.removeprefix('a ')}.", full - {b}), (f"Please swap the {b.removeprefix('a ')} for {e}.", full - {b} | {e}), (f"Add {e} to it.", full | {e}), ("Nothing to change.", full),
               (f"Only {a} after all.", {a}), (f"Everything but the {a.removeprefix('a ')}.", full - {a}), ("Cancel all of it, please.", set()), (f"I nearly took off the {b.removeprefix('a ')}, but keep it all as it is.", full)]
    states = worlds(base, [{"change": text, "has": has} for text, has in d.sample(changes, 5)])
    return Situation(
        f"{name}'s list", states,
        [
            ask(lambda w: b in w["has"], "Does {name} still want {b}?", no=("{B} should not be packed.", "Has {name} dropped this from the list: {b}?")),
            ask(lambda w: e in w["has"], "Is this on the final list of {name}: {e}?", no=("The final list of {name} is without {e}.",)),
            ask(lambda w: a in w["has"], "Should {a} be packed for {name}?", no=("{name} no longer wants {a}.",)),
            ask(lambda w: len(w["has"]) >= 3, "Does the final list have three things or more?", no=("Fewer than three things are left on the list.",)),
        ],
        [Choose(("How many different things does {name} get in the end?",), ["none", "one", "two", "three", "four"], lambda w: ["none", "one", "two", "three", "four"][len(w["has"])])],
        unsaid=("Does {name} need it by Friday?", "Is {name} a regular customer?"),
    )


@situation(
    "corrections", "work",
    "{thing_cap}, led by {name}, is on {first}. {fix}",
    "I wrote that {thing} with {name} is on {first}. {fix}",
    "{thing_cap} with {name}: {first}. {fix}",
    "Yesterday's bulletin gave {first} for {thing} with {name}. {fix}",
    "{name} first said {first} for {thing}. {fix}",
    "On {name}'s poster for {thing} it says {first}. {fix}",
    "Calendar entry by {name}: {thing}, {first}. Comment below: {fix}",
    "{name} announced {thing} for {first}. Then came a second message: {fix}",
)
def correction(d: Draw) -> Situation:
    thing, name = d.choice(("the inspection", "the open day", "the blood donation", "the summer party", "the annual meeting", "the book sale", "the demolition")), d.name()
    x, y, z = d.sample(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"), 3)
    base = {"thing": thing, "thing_cap": cap(thing), "name": name, "first": x, "x": x, "y": y, "z": z}
    states = worlds(base, [{"fix": text, "day": day} for text, day in d.sample((
        (f"Correction: it is {y}.", y), (f"That is right, whatever you may have heard about {y}.", x), (f"Sorry, I meant {y}, not {x}.", y), (f"It was going to be moved to {y}, but that idea was dropped.", x),
        (f"It has been put off to {z}.", z), ("It has been cancelled altogether.", None), (f"Some asked for {y}; it stays as it is.", x), (f"Please read {z} instead.", z), (f"First it was moved to {y}, then to {z}, where it stays.", z),
        (f"It was moved to {y} and is now back where it was.", x),
    ), 5)])
    return Situation(
        f"{thing} with {name}", states,
        [
            ask(lambda w: w["day"] == x, "Does {thing} take place on {x}?", "The day given first, {x}, is right.", no=("{thing_cap} does not take place on {x}.", "Is {x} wrong?")),
            ask(lambda w: w["day"] == y, "Is {y} the day of {thing}?", no=("{thing_cap} is not on {y}.",)),
            ask(lambda w: w["day"] is not None, "Is {thing} going to take place?", no=("{thing_cap} is off.",)),
            ask(lambda w: True, "Was {x} given as the day at first?", no=("{x} was never given as a day.",)),
        ],
        [Choose(("When is {thing}?", "On which day should people come to {thing}?"), [x, y, z, "not at all"], lambda w: w["day"] or "not at all")],
        unsaid=("Does {thing} last all day?", "Is there food at {thing}?"),
    )


YES = ("I'd be glad to.", "Count me in.", "Of course, consider it done.", "With pleasure.", "Sure, why not.", "Put my name down.", "That works for me, so yes.", "Gladly, I was hoping you'd ask.")
NO = ("I'd love to, but that week is already full.", "That's kind of you; I'll have to pass this time.", "I'm flattered, though I'd rather leave it to someone else.", "Sadly it won't work out for me.",
      "Thank you for thinking of me. I'm afraid I have other plans.", "Another time, perhaps; not now.", "It's a lovely idea, just not one for me.", "I must sit this one out, I'm sorry to say.")
OPEN = ("Let me look at my diary and come back to you.", "Hm, when do you need to know?", "I'll sleep on it.", "It depends on my sister, I'll ring her tonight.", "Can I tell you on Friday?", "Maybe, maybe not, ask me next week.", "I haven't made up my mind.")


@situation(
    "soft refusals", "home",
    "{a} asked {b} to {do}. \"{reply}\"",
    "{a}: Would you {do}?\n{b}: {reply}",
    "When {a} asked whether {b} would {do}, the answer was: \"{reply}\"",
    "{b} answered {a}'s request to {do}: {reply}",
    "To {a}'s question \"Could you {do}?\" {b} replied, \"{reply}\"",
    "{a} wrote to {b}: \"Might you {do}?\" Back came: \"{reply}\"",
    "Request by {a} to {b}: {do}. Reply: {reply}",
    "\"{reply}\" That is what {b} wrote when {a} asked if {b} could {do}.",
    "{a} would like {b} to {do}. {b}'s words: \"{reply}\"",
    "Phone call. {a} wants {b} to {do}, and {b} says: \"{reply}\"",
    "Note to self: asked by {a} to {do}, {b} said, \"{reply}\"",
)
def reply(d: Draw) -> Situation:
    a, b = d.names(2)
    do = d.choice(("run the tombola", "look after the hens", "give the opening speech", "drive the minibus", "bake for the fair", "join the committee", "play at the wedding", "host the exchange student", "judge the flower show", "come to the barbecue"))
    base = {"a": a, "b": b, "do": do}
    said = [(d.choice(YES), 2), (d.choice(NO), 0), (d.choice(OPEN), 1), (d.choice(NO), 0), (d.choice(YES), 2)]
    states = worlds(base, [{"reply": text, "k": k} for text, k in said])
    options = ["refuses", "leaves it open", "agrees"]
    return Situation(
        f"{a}'s request to {b}", states,
        [
            ask(lambda w: w["k"] == 2, "Does {b} agree to {do}?", "{b} says yes.", "Can {a} count on {b}?", no=("{b} has not agreed to {do}.", "{a} has no promise from {b}.")),
            ask(lambda w: w["k"] == 0, "Does {b} turn {a} down?", "{a} should ask somebody else, since {b} declines.", no=("{b} does not decline.",)),
            ask(lambda w: w["k"] == 1, "Is {b} still undecided?", "{b} puts off the answer.", no=("{b} has given a clear answer, in whatever words.",)),
            ask(lambda w: True, "Did {a} ask {b} for something?", no=("It was {b} who asked {a} for something.",)),
        ],
        [Choose(("What is {b}'s answer?", "How does {b} respond to {a}?"), options, lambda w: options[w["k"]])],
        [Rate(("How willing is {b} to {do}?",), ["not willing", "undecided", "willing"], lambda w: w["k"])],
        ("Did {a} ask anybody else?", "Has {b} done it before?"),
    )


@situation(
    "soft refusals", "work",
    "{firm} offered {name} {offer}. {name} wrote: \"{reply}\"",
    "We had sent {name} our offer of {offer}. The answer to {firm}: \"{reply}\"",
    "Offer by {firm}: {offer}. Answer from {name}: {reply}",
    "Call log, {firm}. Offered {name} {offer}. {name}: \"{reply}\"",
    "\"{reply}\", {name} replied to {firm} after the offer of {offer}.",
    "{name} got an offer of {offer} from {firm} and answered as follows: {reply}",
    "The talks between {firm} and {name} about {offer} ended like this: \"{reply}\"",
    "{firm} asked {name} about {offer} once more. \"{reply}\" was the answer.",
)
def offer(d: Draw) -> Situation:
    firm, name = d.company(), d.name()
    what = d.choice(("a three-year contract", "the larger plan", "a service package", "a second machine", "an extended guarantee", "a trial month"))
    base = {"firm": firm, "name": name, "offer": what}
    yes = ("We'll take it.", "Please send the papers, I'll sign.", "Agreed.", "Good, let's go ahead with it.", "That suits us, you have a deal.")
    no = ("We've decided to go in another direction.", "It's a fine offer, but it isn't for us.", "Thanks for the effort; we'll stay with what we have.", "I don't see us needing that, to be honest.", "We'll leave it there, thank you.")
    wait = ("Give us until the end of the month to think.", "I need to run it past my partner first.", "Could you explain the price once more before we decide?", "We are still comparing.")
    states = worlds(base, [{"reply": t, "k": k} for t, k in ((d.choice(yes), 2), (d.choice(no), 0), (d.choice(wait), 1), (d.choice(no), 0), (d.choice(yes), 2))])
    options = ["declined", "undecided", "accepted"]
    return Situation(
        f"{firm}'s offer to {name}", states,
        [
            ask(lambda w: w["k"] == 2, "Has {name} accepted {firm}'s offer?", "{firm} has won the deal.", no=("{name} has not accepted the offer.",)),
            ask(lambda w: w["k"] == 0, "Is this a no from {name}?", "{name} does not want {offer}.", no=("{name} has not said no.",)),
            ask(lambda w: w["k"] == 1, "Should {firm} wait for a decision by {name}?", no=("{name} has decided.",)),
            ask(lambda w: True, "Did {firm} make {name} an offer?", no=("{firm} withdrew its offer.",)),
        ],
        [Choose(("How does the offer to {name} stand?", "State of the offer:"), options, lambda w: options[w["k"]])],
        unsaid=("Is {name} an old customer of {firm}?", "Did another company make {name} a better offer?"),
    )
