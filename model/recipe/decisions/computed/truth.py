"""Quantifiers, negation and double negation, said against denied against not said."""
from .world import Choose, Draw, Rate, Situation, ask, cap, situation, within, worlds

PEOPLE = ("volunteers", "drivers", "nurses", "pupils", "members", "waiters", "rangers", "guests", "tenants", "singers", "swimmers", "farmers")
DONE = (("have a key", "having a key"), ("speak French", "speaking French"), ("came to the briefing", ""), ("own a bicycle", ""), ("signed the petition", ""), ("passed the test", ""), ("live nearby", ""), ("voted for the plan", ""))


@situation(
    "quantifiers", "work",
    "{Q} of the {n} {people} in {town} {did}.",
    "In {town}, {q} of the {n} {people} {did}.",
    "There are {n} {people} in {town}; {q} of them {did}.",
    "{name} went through the list of {n} {people} in {town} and found that {q} of them {did}.",
    "Survey in {town}, {n} {people} asked: {q} of them {did}.",
    "Of {n} {people} in {town}, {q} {did}, {name} reports.",
    "\"{Q} of our {n} {people} {did},\" says {name} from {town}.",
    "{name}'s note on {town}: {n} {people}, {q} of whom {did}.",
    "It was about the {n} {people} in {town}. {Q} of them {did}, it turned out.",
)
def quantifier(d: Draw) -> Situation:
    people, (did, _), town, name, n = d.choice(PEOPLE), d.choice(DONE), d.town(), d.name(), d.randrange(10, 30) * 2
    k = d.randrange(2, 6)
    base = {"people": people, "People": cap(people), "did": did, "town": town, "name": name, "n": n}
    kinds = d.sample((("all", n, n), ("none", 0, 0), ("most", n // 2 + 1, n - 1), ("exactly half", n // 2, n // 2), (f"all but {d.number(k)}", n - k, n - k), (f"only {d.number(k)}", k, k), ("fewer than half", 0, n // 2 - 1),
                      ("not one", 0, 0), ("more than half", n // 2 + 1, n), ("every one", n, n)), 5)
    states = worlds(base, [{"q": q, "Q": cap(q), "lo": lo, "hi": hi} for q, lo, hi in kinds])
    inv = lambda x: None if x is None else not x
    return Situation(
        f"the {people} in {town}", states,
        [
            ask(lambda w: within(w["lo"], w["hi"], n), "Is it true of all the {people} in {town} that they {did}?", no=("There is somebody among the {people} in {town} of whom it is not true that they {did}.",)),
            ask(lambda w: within(w["lo"], w["hi"], 1), "Are there any {people} in {town} who {did}?", "At least one of the {people} in {town} is among those who {did}.", no=("None of the {people} in {town} {did}.",)),
            ask(lambda w: within(w["lo"], w["hi"], n // 2 + 1), "Is it a majority of the {people} who {did}?", no=("Those who {did} make up half of the {people} or less.",)),
            ask(lambda w: inv(within(w["lo"], w["hi"], n // 2)), "Is it less than half of the {people} who {did}?", no=("At least half of the {people} in {town} {did}.",)),
        ],
        rates=[Rate(("What share of the {people} in {town} {did}?",), ["less than half", "half", "more than half"], lambda w: 0 if w["hi"] < n // 2 else 1 if w["lo"] == w["hi"] == n // 2 else 2)],
        unsaid=("Are the {people} in {town} paid?", "Were the numbers higher last year?"),
    )


@situation(
    "quantifiers", "home",
    "{who} {verb} the {thing}.",
    "{name} remembers that {who_low} {verb} the {thing}.",
    "{a} and {b} were there. {who} {verb} the {thing}.",
    "The talk was of {a} and {b}. {who}, {name} says, {verb} the {thing}.",
    "As far as the {thing} goes: {who_low} {verb} it.",
    "{a} and {b} are twins, and {who_low} {verb} the {thing}.",
    "According to {name}, {who_low} {verb} the {thing}.",
    "Of {a} and {b} one hears that {who_low} {verb} the {thing}.",
)
def pair(d: Draw) -> Situation:
    a, b, name = d.names(3)
    verb, base_verb = d.choice((("liked", "like"), ("enjoyed", "enjoy"), ("saw", "see"), ("paid for", "pay for"), ("praised", "praise"), ("recommended", "recommend")))
    thing = d.choice(("play", "film", "lecture", "puppet show", "exhibition", "concert", "comedy", "ballet"))
    base = {"a": a, "b": b, "name": name, "verb": verb, "base": base_verb, "thing": thing}
    forms = d.sample(((f"both {a} and {b}", {a, b}), (f"neither {a} nor {b}", set()), (f"{a}, but not {b},", {a}), (f"{b}, unlike {a},", {b}), (f"only one of the two, {a},", {a}), (f"{a} as well as {b}", {a, b}), (f"not {a} but {b}", {b})), 5)
    states = worlds(base, [{"who": cap(t), "who_low": t, "s": s} for t, s in forms])
    options = ["both", f"{a} alone", f"{b} alone", "neither"]
    return Situation(
        f"{a}, {b} and the {thing}", states,
        [
            ask(lambda w: a in w["s"], "Did {a} {base} the {thing}?", "{a} {verb} the {thing}.", no=("{a} did not {base} the {thing}.",)),
            ask(lambda w: b in w["s"], "Did {b} {base} the {thing}?", no=("{b} did not {base} the {thing}.",)),
            ask(lambda w: len(w["s"]) == 2, "Was it the same for both, that they {verb} the {thing}?", no=("At least one of the two did not {base} the {thing}.",)),
            ask(lambda w: len(w["s"]) >= 1, "Did {a} or {b} {base} the {thing}, or both of them?", no=("Not one of the two {verb} the {thing}.",)),
        ],
        [Choose(("Which of the two {verb} the {thing}?",), options, lambda w: options[0] if len(w["s"]) == 2 else options[3] if not w["s"] else options[1] if a in w["s"] else options[2])],
        unsaid=("Did {name} {base} the {thing}?", "Was the {thing} expensive?"),
    )


TASKS = (
    ("lock the door", "locked the door"), ("feed the fish", "fed the fish"), ("call the bank", "called the bank"), ("post the letter", "posted the letter"), ("switch off the oven", "switched off the oven"),
    ("sign the form", "signed the form"), ("water the plants", "watered the plants"), ("send the invoice", "sent the invoice"), ("return the van", "returned the van"), ("save the file", "saved the file"),
    ("book the room", "booked the room"), ("close the valve", "closed the valve"), ("pay the plumber", "paid the plumber"), ("empty the bins", "emptied the bins"),
)


@situation(
    "negation", "home",
    "{name} {form}.",
    "Yesterday {name} {form}.",
    "{other} says that {name} {form}.",
    "As it turns out, {name} {form}.",
    "{name} {form} before leaving, as {other} confirmed.",
    "Good to know: {name} {form} last night.",
    "{other} checked. {name} {form}.",
    "For the record, {name} {form}, and {other} is a witness.",
    "On Sunday evening {name} {form}.",
    "{name} was alone in the house and {form}.",
)
def implicative(d: Draw) -> Situation:
    name, other = d.names(2)
    do, did = d.choice(TASKS)
    base = {"name": name, "other": other, "do": do, "did": did}
    forms = d.sample(((did, True), (f"did not {do}", False), (f"forgot to {do}", False), (f"did not forget to {do}", True), (f"managed to {do}", True), (f"failed to {do}", False), (f"did not fail to {do}", True), (f"remembered to {do}", True),
                      (f"refused to {do}", False), (f"meant to {do} but did not get round to it", False), (f"meant to {do}, and did so", True), (f"took care not to {do}", False), (f"never got round to the plan to {do}", False),
                      (f"had been told to {do} and did", True), (f"had promised to {do}, but broke the promise", False), (f"did {do}, whatever people say", True)), 5)
    states = worlds(base, [{"form": f, "k": k} for f, k in forms])
    return Situation(
        f"{name}", states,
        [
            ask(lambda w: w["k"], "Did {name} {do}?", "{name} {did}.", "Is it right that {name} {did}?", no=("{name} did not {do}.", "Does somebody still have to {do}, as {name} did not?")),
            ask(lambda w: not w["k"], "Was this left undone by {name}: to {do}?", "It would be wrong to say that {name} {did}.", no=("It would be wrong to say that {name} did not {do}.",)),
        ],
        [Choose(("What did {name} do?",), [did, f"did not {do}"], lambda w: did if w["k"] else f"did not {do}")],
        unsaid=("Was {other} pleased with {name}?", "Does {name} live with {other}?", "Did {other} {do}?"),
    )


QUALITIES = (("happy", "unhappy", "the result"), ("satisfied", "dissatisfied", "the repair"), ("prepared", "unprepared", "the audit"), ("aware", "unaware", "the change"), ("familiar", "unfamiliar", "the tool"), ("comfortable", "uncomfortable", "the plan"))
PREPS = {"aware": "of", "prepared": "for", "familiar": "with", "happy": "with", "satisfied": "with", "comfortable": "with"}


@situation(
    "negation", "work",
    "{form}, {other} writes.",
    "{other} reports: {form_low}.",
    "To be clear about {name}: {form_low}.",
    "{form}. That much can be said.",
    "Feedback round, note by {other}: {form_low}.",
    "{form}, and {other} has it in writing.",
    "After the meeting {other} wrote that {form_low}.",
    "What {other} gathered is that {form_low}.",
    "{other} asked around, and {form_low}.",
)
def double(d: Draw) -> Situation:
    name, other = d.names(2)
    adj, un, what = d.choice(QUALITIES)
    prep = PREPS[adj]
    base = {"name": name, "other": other, "adj": adj, "un": un, "what": what, "prep": prep}
    forms = d.sample(((f"{name} is {adj} {prep} {what}", 1), (f"{name} is {un} {prep} {what}", 0), (f"{name} is anything but {adj} {prep} {what}", 0), (f"{name} is by no means {un} {prep} {what}, quite the opposite", 1),
                      (f"nobody could call {name} {adj} {prep} {what}", 0), (f"it is not true that {name} is {un} {prep} {what}; {name} is {adj}", 1), (f"{name} is not {adj} {prep} {what}", 0), (f"{name} is {adj} {prep} {what}, despite the rumours", 1),
                      (f"there is no doubt that {name} is {adj} {prep} {what}", 1), (f"{name} is no longer {adj} {prep} {what}", 0), (f"{name} has never been {un} {prep} {what} but {adj} all along", 1)), 5)
    states = worlds(base, [{"form": cap(t), "form_low": t, "k": bool(k)} for t, k in forms])
    return Situation(
        f"{name} and {what}", states,
        [
            ask(lambda w: w["k"], "Is {name} {adj} {prep} {what}?", "{name} is {adj} {prep} {what} at present.", no=("{name} is not {adj} {prep} {what}.", "Is it the case that {name} is not {adj}?")),
            ask(lambda w: not w["k"], "Would it be false to call {name} {adj} {prep} {what}?", "One cannot truthfully say that {name} is {adj} {prep} {what}.", no=("One can truthfully say that {name} is {adj} {prep} {what}.",)),
        ],
        unsaid=("Is {other} {adj} {prep} {what}?", "Has {name} told anybody else about it?"),
    )


THINGS = (("the flat", (("a balcony", "balcony"), ("a lift", "lift"), ("a cellar", "cellar"), ("parking", "parking space"))), ("the soup", (("nuts", "nuts"), ("milk", "milk"), ("celery", "celery"), ("gluten", "gluten"))),
          ("the hotel room", (("a bath", "bath"), ("a safe", "safe"), ("a desk", "desk"), ("air conditioning", "air conditioning"))), ("the phone", (("a headphone socket", "socket"), ("a spare battery", "battery"), ("a warranty", "warranty"), ("a second camera", "camera"))))


@situation(
    "silent or denied", "home",
    "{Thing} that {name} looked at comes {say}.",
    "About {thing}: {name} was told that it comes {say}.",
    "{name}'s notes on {thing}: it comes {say}.",
    "\"{Thing} comes {say},\" {name} wrote.",
    "The description that {name} read says that {thing} comes {say}.",
    "For {name} the main point is that {thing} comes {say}.",
    "{name} asked about {thing}. It comes {say}, came the answer.",
    "{name} read the small print: {thing} comes {say}.",
)
def has(d: Draw) -> Situation:
    thing, parts = d.choice(THINGS)
    a, b, c = d.sample([p[0] for p in parts], 3)
    name = d.name()
    base = {"name": name, "thing": thing, "Thing": cap(thing), "a": a, "b": b, "c": c}
    states = worlds(base, [{"say": t, "x": x, "y": y, "z": z} for t, x, y, z in d.sample((
        (f"with {a}", True, None, None), (f"without {a}", False, None, None), (f"with {b}", None, True, None), (f"with {a} but without {b}", True, False, None), (f"without {a}, though with {b}", False, True, None),
        (f"with neither {a} nor {b}", False, False, None), (f"with both {a} and {b}", True, True, None), (f"with {c} but not with {a}", False, None, True), (f"with {a} and without {c}", True, None, False), (f"with everything but {a}", False, True, True)), 5)])
    return Situation(
        f"{thing} that {name} asked about", states,
        [
            ask(lambda w: w["x"], "Does {thing} have {a}?", "{a_cap} comes with {thing}.".replace("{a_cap}", cap(a)), no=("{Thing} lacks {a}.",)),
            ask(lambda w: w["y"], "Does {thing} have {b}?", no=("{Thing} is without {b}.",)),
            ask(lambda w: w["z"], "Does {thing} have {c}?", no=("{Thing} is without {c}.",)),
            ask(lambda w: w["x"] is not None, "Does the text say whether {thing} has {a}?", no=("Nothing is said about whether {thing} has {a}.",)),
            ask(lambda w: w["y"] is not None, "Does the text say whether {thing} has {b}?", no=("Whether {thing} has {b} is left open.",)),
        ],
        unsaid=("Will {name} take {thing}?", "Is {thing} cheaper than others?"),
    )


@situation(
    "silent or denied", "work",
    "{name} came in for the intake interview. {say}",
    "Intake of {name}, first page. {say}",
    "Interview notes on {name}: {say}",
    "Form filled in with {name}. {say} Signed on the same day.",
    "{other} spoke to {name}. {say}",
    "Call with {name}, taken down by {other}. {say}",
    "{say} This was taken down by {other} after a talk with {name}.",
    "Summary of the talk that {other} had with {name}: {say}",
)
def intake(d: Draw) -> Situation:
    name, other = d.names(2)
    yes, no, question, negative = d.choice((
        (f"{name} smokes.", f"{name} does not smoke.", "Does {name} smoke?", "{name} is a non-smoker."), (f"{name} has pets.", f"{name} keeps no pets.", "Does {name} have pets?", "{name} has no pets."),
        (f"{name} holds a forklift licence.", f"{name} has no forklift licence.", "Does {name} have a forklift licence?", "{name} is without a forklift licence."),
        (f"{name} is allergic to penicillin.", f"{name} has no allergy of any kind.", "Is {name} allergic to penicillin?", "{name} is not allergic to penicillin."),
        (f"{name} has worked abroad.", f"{name} has never worked abroad.", "Has {name} worked abroad?", "{name} has not worked abroad."),
        (f"{name} owns a car.", f"{name} has no car.", "Does {name} own a car?", "{name} is without a car."),
    ))
    skip = d.choice((f"{name} prefers mornings to evenings.", f"{name} grew up in the north.", f"{name} was ten minutes early."))
    base = {"name": name, "other": other, "yes": yes, "question": question.format(name=name), "negative": negative.format(name=name)}
    states = worlds(base, [{"say": yes, "k": True}, {"say": no, "k": False}, {"say": skip, "k": None}, {"say": f"{yes} {skip}", "k": True}, {"say": f"{skip} {no}", "k": False}])
    options = ["yes", "no", "not stated"]
    return Situation(
        f"{name}'s answers", states,
        [
            ask(lambda w: w["k"], "{question}", "True of {name}: \"{yes}\"", no=("{negative}",)),
            ask(lambda w: w["k"] is False, "Is it denied in the text: \"{yes}\"", no=("The text does not deny this: \"{yes}\"",)),
            ask(lambda w: w["k"] is not None, "Can this be answered from the text: \"{question}\"", no=("The text is silent on this: \"{question}\"",)),
        ],
        [Choose(("{question}",), options, lambda w: options[{True: 0, False: 1, None: 2}[w["k"]]])],
        unsaid=("Is {name} over forty?", "Did {name} get the place?"),
    )
