"""Who did what to whom; who said it; reported against established."""
from .world import Choose, Draw, Situation, ask, cap, situation, worlds

# past, passive participle, base
VERBS = (
    ("thanked", "thanked", "thank"), ("called", "called", "call"), ("replaced", "replaced", "replace"), ("trained", "trained", "train"), ("visited", "visited", "visit"),
    ("criticised", "criticised", "criticise"), ("overtook", "overtaken", "overtake"), ("invited", "invited", "invite"), ("reported", "reported", "report"), ("hired", "hired", "hire"),
    ("warned", "warned", "warn"), ("beat", "beaten", "beat"), ("recommended", "recommended", "recommend"), ("interviewed", "interviewed", "interview"), ("photographed", "photographed", "photograph"),
    ("sued", "sued", "sue"), ("helped", "helped", "help"), ("taught", "taught", "teach"), ("followed", "followed", "follow"), ("painted", "painted", "paint"),
)


@situation(
    "roles", "work",
    "{x} {past} {y} in {town}.",
    "{y} was {part} by {x} in {town}.",
    "It was {x} who {past} {y} in {town}.",
    "It was {y} who was {part} by {x} in {town}.",
    "In {town}, {y} got {part} by {x}.",
    "What happened in {town} is that {x} {past} {y}.",
    "Having arrived in {town} in the morning, {x} {past} {y} before lunch.",
    "The person whom {x} {past} in {town} was {y}.",
    "The one who {past} {y} in {town} was {x}, not the other way round.",
    "In {town} {x} did {base} {y}, as several people saw.",
)
def transitive(d: Draw) -> Situation:
    a, b, c = d.names(3)
    past, part, base_form = d.choice(VERBS)
    town = d.town()
    base = {"past": past, "part": part, "base": base_form, "town": town, "a": a, "b": b, "c": c}
    states = worlds(base, [{"x": a, "y": b}, {"x": b, "y": a}, {"x": c, "y": a}, {"x": a, "y": c}])
    pair = lambda w, p, q: True if (w["x"], w["y"]) == (p, q) else False if (w["x"], w["y"]) == (q, p) else None
    return Situation(
        f"{a} in {town}", states,
        [
            ask(lambda w: pair(w, a, b), "Did {a} {base} {b}?", "{b} was {part} by {a}.", no=("{a} did not {base} {b}.",)),
            ask(lambda w: pair(w, b, a), "Was {a} {part} by {b}?", "{b} {past} {a}.", no=("{a} was not {part} by {b}.",)),
            ask(lambda w: w["x"] == a, "In what is told of {town}, is {a} the one who {past} somebody?", no=("In what is told of {town}, {a} is the one who was {part}.",)),
            ask(lambda w: True, "Does the text say that something happened in {town}?", no=("{town} is not mentioned.",)),
        ],
        [Choose(("Who was {part} in {town}?",), [a, b, c], lambda w: w["y"]), Choose(("Who {past} the other one in {town}?",), [a, b, c], lambda w: w["x"])],
        unsaid=("Do {a} and {b} come from the same family?", "Has {a} been in {town} before?"),
    )


GIVES = (("lent", "lent", "borrowed", "lend", "borrow"), ("sold", "sold", "bought", "sell", "buy"), ("gave", "given", "received", "give", "receive"), ("sent", "sent", "got", "send", "get"))


@situation(
    "roles", "home",
    "{x} {gave} {y} {thing}.",
    "{x} {gave} {thing} to {y}.",
    "{y} {took} {thing} from {x}.",
    "{Thing} was {given} to {y} by {x}.",
    "{Thing} came to {y} from {x}, who {gave} it only last week.",
    "It was from {x} that {y} {took} {thing}.",
    "{y} is glad to have {thing}, which {x} {gave}.",
    "{y}, to whom {x} {gave} {thing}, wrote to say so.",
    "{Thing} used to be with {x}, who {gave} it to {y}.",
)
def transfer(d: Draw) -> Situation:
    a, b, c = d.names(3)
    gave, given, took, give, take = d.choice(GIVES)
    thing = d.choice(("the silver necklace", "the old tractor", "the stamp album", "the canoe", "the sewing machine", "the chess set", "the violin", "the greenhouse"))
    base = {"gave": gave, "given": given, "took": took, "give": give, "take": take, "thing": thing, "Thing": cap(thing), "a": a, "b": b, "c": c}
    states = worlds(base, [{"x": a, "y": b}, {"x": b, "y": a}, {"x": c, "y": b}, {"x": b, "y": c}])
    return Situation(
        f"{thing} and {b}", states,
        [
            ask(lambda w: w["y"] == b, "Did {b} {take} {thing}?", "{b} was at the receiving end.", no=("{b} parted with {thing}.", "Was {b} the one who {gave} {thing}?")),
            ask(lambda w: w["x"] == a, "Did {thing} come from {a}?", "{a} {gave} {thing} to somebody.", no=("{a} is not the person who {gave} {thing}.",)),
            ask(lambda w: w["x"] == b, "Did {b} {give} {thing} to somebody?", no=("{b} did not {give} {thing} to anybody, but got it.",)),
            ask(lambda w: True, "Did {thing} change hands?", no=("{Thing} stayed where it was.",)),
        ],
        [Choose(("Who {gave} {thing}?",), [a, b, c], lambda w: w["x"]), Choose(("Who {took} {thing}?", "With whom did {thing} end up?"), [a, b, c], lambda w: w["y"])],
        unsaid=("Is {thing} worth a lot?", "Did {b} pay for transport?"),
    )


DEEDS = (
    ("broke the vase", "break the vase"), ("left the gate open", "leave the gate open"), ("deleted the folder", "delete the folder"), ("signed the letter", "sign the letter"),
    ("moved the boat", "move the boat"), ("found the wallet", "find the wallet"), ("won the raffle", "win the raffle"), ("wrote the anonymous note", "write the anonymous note"),
    ("locked the cellar", "lock the cellar"), ("rang the bell", "ring the bell"), ("fed the horses", "feed the horses"), ("changed the password", "change the password"),
)


@situation(
    "attribution", "work",
    "{x} says that {y} {did}.",
    "According to {x}, {y} {did}.",
    "\"{y} {did},\" {x} told us.",
    "{y} {did}, {x} says.",
    "It is {x} who claims that {y} {did}; nobody has checked it.",
    "Statement by {x}: {y} {did}. No statement by {y} has been taken.",
    "\"It was {y} who {did},\" said {x}.",
    "{x} wrote in the incident book that {y} {did}.",
    "Asked about it, {x} named {y} as the person who {did}.",
)
def who_said(d: Draw) -> Situation:
    a, b, c = d.names(3)
    did, do = d.choice(DEEDS)
    base = {"did": did, "do": do, "a": a, "b": b, "c": c}
    states = worlds(base, [{"x": a, "y": b}, {"x": b, "y": a}, {"x": c, "y": a}, {"x": a, "y": c}])
    return Situation(
        f"what {a} has to do with it", states,
        [
            ask(lambda w: w["x"] == a, "Does the claim come from {a}?", "{a} names somebody else as the person who {did}.", no=("The claim is made by somebody other than {a}.",)),
            ask(lambda w: w["y"] == a, "Is {a} said to be the one who {did}?", no=("Somebody other than {a} is said to be the one who {did}.",)),
            ask(lambda w: w["y"] == b, "Does the account say that {b} {did}?", no=("The account names somebody other than {b} as the one who {did}.",)),
            ask(lambda w: True, "Is it somebody's word, rather than a proven fact, who {did}?", no=("The text itself proves who {did}.",)),
        ],
        [Choose(("Who, by this account, {did}?",), [a, b, c], lambda w: w["y"]), Choose(("Whose account is it?", "Who makes the claim?"), [a, b, c], lambda w: w["x"])],
        unsaid=("Is {a} angry?", "Will there be a penalty?"),
    )




@situation(
    "attribution", "work",
    "{a} {stance}, and {b} was in the room when that was said.",
    "When {b} asked, {a} {stance}.",
    "In a call with {b}, {a} {stance}.",
    "{b} writes: {a} {stance}.",
    "The record made by {b} states that {a} {stance}.",
    "{a} {stance}. That was on Tuesday, in front of {b}.",
    "Before lunch {a} {stance}; {b} made a note of it.",
    "This is what {b} heard: {a} {stance}.",
    "{a} was asked twice and {stance} both times; {b} was there.",
)
def stance(d: Draw) -> Situation:
    a, b, c = d.names(3)
    did, do = d.choice(DEEDS)
    base = {"a": a, "b": b, "c": c, "did": did, "do": do}
    states = worlds(base, [
        {"stance": s, "own": own, "other": other} for s, own, other in d.sample((
            (f"admitted to being the one who {did}", True, False), (f"denied being the one who {did}", False, None), (f"said that {c} {did}", False, True),
            (f"refused to say who {did}", None, None), (f"denied that {c} {did}", None, False), (f"said, \"Yes, I {did}\"", True, False), (f"said, \"No, it was not me who {did}\"", False, None),
            (f"blamed {c}, who supposedly {did}", False, True), (f"took the blame for it, saying \"I {did}, not {c}\"", True, False), (f"would not tell who {did}", None, None),
        ), 5)
    ])
    return Situation(
        f"{a} and {c}", states,
        [
            ask(lambda w: w["own"] is True, "Does {a} admit to being the one who {did}?", "By {a}'s own words, it was {a} who {did}.", no=("{a} owns up to nothing.",)),
            ask(lambda w: w["own"], "Going by {a}'s words, did {a} {do}?", no=("Going by {a}'s words, somebody other than {a} {did}.",)),
            ask(lambda w: w["other"] is True, "Does {a} put the blame on {c}?", "{a} points to {c}.", no=("{a} does not accuse {c}.",)),
            ask(lambda w: True, "Did {b} learn what {a} had to say?", no=("{b} knows nothing of what {a} said.",)),
        ],
        unsaid=("Does {b} believe {a}?", "Was anything paid for the damage?", "Did {b} {do}?"),
    )


@situation(
    "attribution", "work",
    "{a} {verb} that {fact}.",
    "About {town}, {a} {verb} that {fact}.",
    "As for {town}: {a} {verb} that {fact}, and we have heard nothing else.",
    "From the {town} file: {a} {verb} that {fact}.",
    "Yesterday {a} {verb} that {fact}.",
    "{a}, who works in {town}, {verb} that {fact}.",
    "There is news of {town}, or is there? {a} {verb} that {fact}.",
)
def factive(d: Draw) -> Situation:
    a, town = d.name(), d.town()
    fact, question, negative = d.choice((
        (f"the bridge in {town} is closed", f"Is the bridge in {town} closed?", f"The bridge in {town} is open."), (f"the mill in {town} has been sold", f"Has the mill in {town} been sold?", f"The mill in {town} has not been sold."),
        (f"the {town} office is moving", f"Is the {town} office moving?", f"The {town} office stays where it is."), (f"the well in {town} is dry", f"Is the well in {town} dry?", f"There is water in the well of {town}."),
        (f"the {town} plant has a new manager", f"Does the {town} plant have a new manager?", f"The {town} plant has kept its manager."), (f"the harbour of {town} is frozen", f"Is the harbour of {town} frozen?", f"The harbour of {town} is free of ice."),
    ))
    base = {"a": a, "town": town, "fact": fact, "question": question, "negative": negative}
    states = worlds(base, [{"verb": v, "k": k, "b": b} for v, k, b in d.sample((
        ("found out", True, True), ("realised", True, True), ("wrongly believed", False, True), ("imagined", None, None), ("discovered", True, True), ("pretended", False, False),
        ("hopes", None, None), ("suspects", None, None), ("had the mistaken idea", False, True), ("proved", True, True), ("falsely claimed", False, None), ("wonders whether it may be", None, None),
    )[:11], 5)])
    return Situation(
        f"what {a} thinks about {town}", states,
        [
            ask(lambda w: w["k"], "{question}", "It is a fact that {fact}.", no=("{negative}",)),
            ask(lambda w: w["k"] is False, "Does the text make clear that it is not true that {fact}?", no=("For all the text says, it may be true that {fact}.",)),
            ask(lambda w: w["k"] is None, "Does the text leave it open whether {fact}?", no=("After reading, one knows whether it is true that {fact}.",)),
        ],
        unsaid=("Is {a} pleased about it?", "Does anyone in {town} disagree with {a}?"),
    )
