"""Dates and deadlines; what came before and after."""
from datetime import timedelta

from .world import Choose, Draw, Rate, Situation, ask, band, cap, clock, situation, worlds

HAND_INS = (
    ("the grant application", "sent in"), ("the tax form", "posted"), ("the field report", "handed in"), ("the manuscript", "delivered"),
    ("the membership fee", "paid"), ("the rent", "paid"), ("the safety checklist", "submitted"), ("the expense claim", "filed"),
    ("the signed lease", "returned"), ("the translation", "delivered"), ("the exam paper", "handed in"), ("the library book", "returned"),
    ("the poster design", "submitted"), ("the visa form", "posted"), ("the warranty claim", "filed"), ("the survey", "sent back"),
)


@situation(
    "dates", "work",
    "{Thing} from {name} was due on {due}; it was {done} on {when}.",
    "{name} had until {due} to have {thing} {done}, and it was {done} on {when}.",
    "Deadline for {thing}: {due}. {name}: {done} on {when}.",
    "On {when}, {name} saw to it that {thing} was {done}; the last day for it was {due}.",
    "{Thing} ({name}) was {done} on {when}. The cut-off was {due}.",
    "The closing date was {due}. {name}'s copy of {thing} is stamped {when}, the day it was {done}.",
    "We asked {name} for {thing} by {due} at the latest. According to the register it was {done} on {when}.",
    "{name} wrote that {thing}, due by the end of {due}, was {done} on {when}.",
    "Reminder to file: {thing} of {name}, last day {due}, {done} {when}.",
)
def deadline(d: Draw) -> Situation:
    thing, done = d.choice(HAND_INS)
    name, due = d.name(), d.day()
    late = [d.randrange(-9, 0), 0, 1, d.randrange(2, 7), d.randrange(8, 20)]
    base = {"thing": thing, "Thing": cap(thing), "done": done, "name": name, "due": d.write_day(due)}
    states = worlds(base, [{"when": d.write_day(due + timedelta(days=n)), "late": n} for n in late])
    levels, bounds = d.choice((
        (["before the last day", "on the last day", "after the last day"], (0, 1)),
        (["on time", "up to a week late", "more than a week late"], (1, 8)),
        (["in time", "late"], (1,)),
        (["early", "on the day", "one day late", "two to seven days late", "later than that"], (0, 1, 2, 8)),
    ))
    return Situation(
        f"{name} and {thing}", states,
        [
            ask(lambda w: w["late"] <= 0, "Did {name} meet the deadline?", "{Thing} was {done} in time.", "Was {thing} {done} by the due date?",
                no=("Did {name} miss the deadline?", "{Thing} was {done} too late.", "Was {name} late with {thing}?")),
            ask(lambda w: w["late"] < 0, "Was {thing} {done} before the last day?", "{name} still had at least a day to spare.",
                no=("{name} had no day to spare when {thing} was {done}.",)),
            ask(lambda w: w["late"] > 7, "Was it more than a week late?", no=("{name} was at most a week late, if at all.",)),
            ask(lambda w: True, "Was there a fixed last day for {thing}?", "{Thing} has been {done}.", no=("{name} never got {thing} {done}.", "There was no deadline for {thing}.")),
        ],
        rates=[Rate(("How punctual was {name} with {thing}?", "When was {thing} {done}, measured by the deadline?"), levels, lambda w: band(w["late"], bounds))],
        unsaid=("Did {name} apologise?", "Was {name} given a fine?", "Has {name} done this before?"),
    )


@situation(
    "dates", "home",
    "{name}'s {card} is valid until {until}; the trip starts on {start}.",
    "The {card} that {name} holds runs out on {until}, and departure is on {start}.",
    "{name} leaves on {start}. The last day on which the {card} can be used is {until}.",
    "Departure {start}. Traveller {name}, {card}, good through {until}.",
    "{name} has booked for {start} and found that the {card} expires at the end of {until}.",
    "The {card} in {name}'s drawer says \"valid to {until}\", and the journey begins on {start}.",
    "Travel day for {name} is {start}; {card}: last valid day {until}.",
    "Before {name} goes, one question: the {card} is good until {until}, and the first day away is {start}.",
)
def validity(d: Draw) -> Situation:
    name, until = d.name(), d.day()
    card = d.choice(("passport", "rail card", "travel insurance", "museum pass", "driving licence", "visa", "voucher", "student card"))
    base = {"name": name, "card": card, "until": d.write_day(until)}
    gaps = [d.randrange(-40, -8), d.randrange(-6, 0), 0, d.randrange(1, 6), d.randrange(10, 60)]
    states = worlds(base, [{"start": d.write_day(until + timedelta(days=g)), "gap": g} for g in gaps])
    return Situation(
        f"{name}'s {card}", states,
        [
            ask(lambda w: w["gap"] <= 0, "Is the {card} still valid on the first day of travel?", "{name} can use the {card} on the day of departure.",
                no=("Will the {card} have expired before {name} sets off?", "The {card} is out of date when the trip begins.")),
            ask(lambda w: w["gap"] < 0, "Does {name} leave before the last valid day?", no=("{name} does not leave until the last valid day or later.",)),
            ask(lambda w: w["gap"] <= -8, "Is the {card} good for at least a week after departure?", no=("Within a week of leaving, the {card} will be invalid.",)),
        ],
        [Choose(("When does the {card} expire, seen from the start of the trip?",), ["before it", "on the same day", "after it"],
                lambda w: "before it" if w["gap"] > 0 else "after it" if w["gap"] < 0 else "on the same day")],
        unsaid=("Has {name} asked for a new {card}?", "Does {name} travel alone?", "Did the {card} cost more than last year?"),
    )


@situation(
    "dates", "work",
    "{Desk} takes requests from {a} to {b}; {name}'s came in on {c}.",
    "Applications to {desk} are open from {a} until and including {b}. {name} applied on {c}.",
    "{name} sent a request to {desk} on {c}. Requests are accepted between {a} and {b}, both days included.",
    "Period for requests to {desk}: {a} to {b}. Received from {name}: {c}.",
    "{Desk} opened its list on {a} and closed it at the end of {b}; the entry by {name} is dated {c}.",
    "Nothing sent before {a} or after {b} counts, {desk} says, and {name} wrote on {c}.",
    "{name} wants to be considered by {desk} and wrote on {c}; the window was {a} to {b}, first and last day included.",
)
def window(d: Draw) -> Situation:
    name, a = d.name(), d.day()
    length = d.randrange(6, 30)
    desk = d.choice(("the housing office", "the exchange programme", "the allotment society", "the training desk", "the subsidy office", "the leave planner"))
    base = {"name": name, "desk": desk, "Desk": cap(desk), "a": d.write_day(a), "b": d.write_day(a + timedelta(days=length))}
    offsets = [d.randrange(-9, -1), 0, d.randrange(2, length - 1), length, length + d.randrange(1, 10)]
    states = worlds(base, [{"c": d.write_day(a + timedelta(days=o)), "o": o} for o in offsets])
    place = lambda w: 0 if w["o"] < 0 else 2 if w["o"] > length else 1
    options = ["too early", "in time", "too late"]
    return Situation(
        f"{name}'s request to {desk}", states,
        [
            ask(lambda w: place(w) == 1, "Did {name}'s request fall within the period?", "{name} wrote while the list was open.", "Does {name}'s request count?",
                no=("{name}'s request lies outside the period.", "Was {name} too early or too late?")),
            ask(lambda w: place(w) == 2, "Had {desk} already closed when {name} wrote?", no=("{name} wrote on the closing day or before.",)),
            ask(lambda w: place(w) == 0, "Did {name} write before the period had begun?", no=("The period had begun when {name} wrote.",)),
        ],
        [Choose(("How does {name}'s request stand to the period?", "{name}'s request was"), options, lambda w: options[place(w)])],
        unsaid=("Was {name}'s request granted?", "Did {name} apply last year too?"),
    )


@situation(
    "dates", "work",
    "{Event} with {name} starts at {start} and lasts {long} minutes; {other}'s train leaves at {train}.",
    "{name} runs {event} from {start} for {long} minutes. {other} has a train at {train}.",
    "{other} must catch the {train} train. Before that: {event} with {name}, {start}, {long} minutes.",
    "Diary: {start} {event} ({name}, {long} min). {train} train ({other}).",
    "At {start} {name} opens {event}, planned for {long} minutes, and at {train} the train of {other} departs.",
    "{Event} that {name} gives takes {long} minutes and begins at {start} sharp. The train {other} wants goes at {train}.",
    "{other} will take the {train} train after {event}, which {name} begins at {start} and which lasts {long} minutes.",
    "{name} needs {long} minutes for {event} and begins at {start}; {train} is when {other}'s train pulls out.",
)
def ends(d: Draw) -> Situation:
    name, other = d.names(2)
    event = d.choice(("the workshop", "the briefing", "the rehearsal", "the interview", "the guided tour", "the tasting", "the lecture"))
    start, train_gap = d.randrange(8 * 12, 17 * 12) * 5, d.choice((60, 75, 90, 120))
    base = {"name": name, "other": other, "event": event, "Event": cap(event), "start": clock(start), "train": clock(start + train_gap), "gap": train_gap}
    states = worlds(base, [{"long": n} for n in (train_gap - 40, train_gap - 15, train_gap + 10, train_gap + 45)])
    return Situation(
        f"{event} with {name}", states,
        [
            ask(lambda w: w["long"] < w["gap"], "Is {event} over before {other}'s train leaves?", "If all runs to plan, {event} ends before {train}.",
                no=("Does {event} run past the departure of {other}'s train?", "{Event} ends after {train}.")),
            ask(lambda w: w["long"] > 60, "Does {event} take more than an hour?", no=("{Event} takes an hour or less.",)),
            ask(lambda w: w["gap"] - w["long"] >= 30, "Is there at least half an hour between the end of {event} and the train?",
                no=("Less than half an hour lies between the end of {event} and the train, if any.",)),
            ask(lambda w: True, "Does {event} start before {other}'s train leaves?", no=("The train leaves before {event} begins.",)),
        ],
        [Choose(("At what time does {event} end?", "When is {event} over?"), [clock(start + n) for n in (train_gap - 40, train_gap - 15, train_gap + 10, train_gap + 45)],
                lambda w: clock(start + w["long"]))],
        unsaid=("Is {other} going to attend {event}?", "Has {name} given {event} before?"),
    )


@situation(
    "dates", "legal",
    "A return is accepted within {n} days of delivery. {name}'s parcel {code} was delivered on {a} and sent back on {b}.",
    "Parcel {code} reached {name} on {a}. Goods may be returned up to {n} days after delivery; {name} returned them on {b}.",
    "{name} received order {code} on {a} and posted it back on {b}; the terms allow {n} days from delivery.",
    "The right to return ends {n} days after delivery. Order {code} ({name}): delivered {a}, returned {b}.",
    "Case {code}: delivery to {name} on {a}, return on {b}, return period {n} days from the day of delivery.",
    "Customers have {n} days from delivery to send goods back, and {name}, who got parcel {code} on {a}, did so on {b}.",
    "Return of {code} by {name}: posted {b}, goods received {a}, time allowed {n} days after receipt.",
)
def return_period(d: Draw) -> Situation:
    name, code, a, n = d.name(), d.code(), d.day(), d.choice((7, 10, 14, 21, 30))
    base = {"name": name, "code": code, "n": n, "a": d.write_day(a)}
    states = worlds(base, [{"b": d.write_day(a + timedelta(days=t)), "t": t} for t in (d.randrange(1, n - 3), n - 1, n + 1, n + d.randrange(3, 20))])
    return Situation(
        f"parcel {code}", states,
        [
            ask(lambda w: w["t"] <= w["n"], "Was the parcel returned within the period?", "{name} sent the goods back in time.", "Must the return by {name} be accepted under these terms?",
                no=("Had the return period run out when {name} sent the goods back?", "{name} returned the goods too late.")),
            ask(lambda w: w["t"] <= w["n"] / 2, "Did {name} use less than half of the period, or just half of it?", no=("More than half of the period had gone by when the goods were returned.",)),
            ask(lambda w: True, "Did {name} receive the goods before returning them?", no=("{name} returned the goods before they had been delivered.",)),
        ],
        rates=[Rate(("How long did {name} keep the goods?",), [f"less than {n - 2} days", f"{n - 2} to {n} days", f"more than {n} days"], lambda w: band(w["t"], (n - 2, n + 1)))],
        unsaid=("Were the goods damaged?", "Did {name} dislike the colour?", "Has {name} got the money back?"),
    )


STEPS = (
    ("work", ("the floor was swept", "the shelves were filled", "the till was counted", "the blinds were lowered")),
    ("home", ("the dough was kneaded", "the oven was lit", "the apples were peeled", "the table was laid")),
    ("tech", ("the database was backed up", "the server was patched", "the cache was cleared", "the alarm was muted")),
    ("work", ("the contract was signed", "the deposit was paid", "the keys were handed over", "the meter was read")),
    ("work", ("the roof was repaired", "the walls were painted", "the wiring was tested", "the carpet was laid")),
    ("home", ("the tent was pitched", "the fire was lit", "the boat was unloaded", "the soup was heated")),
)


def _events(d: Draw) -> list[str]:
    return d.sample(d.choice(STEPS)[1], 4)


@situation(
    "sequence", "work",
    "In {town}, {a} {link} {b}.",
    "At the {town} site {a} {link} {b}, {name} noted.",
    "{name} remembers that in {town} {a} {link} {b}.",
    "Report by {name}: in {town}, {a} {link} {b}. Nothing else was done.",
    "{Link2} in {town}, {name} confirmed.",
    "As {name} tells it, {a} {link} {b}; that was in {town}.",
    "It was in {town}, and {name} checked the order of things: {a} {link} {b}.",
    "\"In {town} {a} {link} {b},\" {name} said.",
)
def two_events(d: Draw) -> Situation:
    a, b, *_ = _events(d)
    name, town = d.name(), d.town()
    base = {"a": a, "b": b, "A": cap(a), "B": cap(b), "name": name, "town": town}
    links = d.sample((("before", 1), ("after", -1), ("only after", -1), ("shortly before", 1), ("long before", 1), ("as soon as", -1), ("not until", 0), ("a day after", -1)), 6)
    links = [link for link in links if link[1]]
    states = worlds(base, [{"link": link, "first": 1 if side > 0 else -1, "Link2": f"{cap(link)} {b}, {a}"} for link, side in links])
    return Situation(
        f"{town}", states,
        [
            ask(lambda w: w["first"] > 0, "Is it true that {a} first and {b} afterwards?", "First {a}, then {b}.", no=("First {b}, then {a}.", "Is it true that {b} before {a}?")),
            ask(lambda w: w["first"] < 0, "{B}, and {a} later.", "Was the order such that {b} earlier and {a} later?", no=("{A} earlier than {b}.",)),
            ask(lambda w: True, "Did both things happen in {town}?", no=("Only one of the two things was done in {town}.",)),
        ],
        [Choose(("Which came first in {town}?", "What happened earlier?"), [a, b], lambda w: a if w["first"] > 0 else b),
         Choose(("Which came last in {town}?", "What was done later of the two?"), [a, b], lambda w: b if w["first"] > 0 else a)],
        unsaid=("Did {name} help with the work?", "Did it take longer than planned?"),
    )


@situation(
    "sequence", "home",
    "First {x}, then {y}, and last of all {z}; {name} was there all day.",
    "{name} saw how {x}; after that {y}, and in the end {z}.",
    "{Z} in the end. Before that {y}, and before that {x}, {name} says.",
    "When {name} came, {x}. Then {y}. Finally {z}.",
    "The list that {name} kept: 1. {x}, 2. {y}, 3. {z}.",
    "{name} wrote: \"{X} to begin with. {Z} at the very end, and between the two {y}.\"",
    "{X}, whereupon {y}, and once that was done {z}, as {name} reports.",
    "By {name}'s watch, {x} at {t1}, {y} at {t2} and {z} at {t3}.",
    "At {t3} {z}, at {t1} {x} and at {t2} {y}, by {name}'s notes.",
)
def three_steps(d: Draw) -> Situation:
    e = _events(d)[:3]
    name = d.name()
    times = sorted(d.sample(range(9 * 12, 18 * 12), 3))
    base = {"name": name, "a": e[0], "b": e[1], "c": e[2], **{f"t{k + 1}": clock(t * 5) for k, t in enumerate(times)}}
    orders = d.sample(((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)), 5)
    states = worlds(base, [{"x": e[o[0]], "y": e[o[1]], "z": e[o[2]], "X": cap(e[o[0]]), "Z": cap(e[o[2]]), "o": o} for o in orders])
    at = lambda w, k: w["o"].index(k)
    return Situation(
        f"the day with {name}", states,
        [
            ask(lambda w: at(w, 0) == 0, "Was the first thing of all that {a}?", "Nothing on the list came before this: {a}.", no=("Something else was done before {a}.",)),
            ask(lambda w: at(w, 0) < at(w, 1), "Is it true that {a} before {b}?", "It happened in this order: {a}, and some time later {b}.", no=("Is it true that {b} before {a}?",)),
            ask(lambda w: at(w, 2) > at(w, 1), "Is it so that {c} later than {b}?", no=("Is it so that {c} sooner than {b}?",)),
            ask(lambda w: at(w, 1) == 2, "At the end of the day's list stands that {b}.", no=("Something followed after {b}.",)),
        ],
        [
            Choose(("What was done first?", "Which of these came first?"), e, lambda w: e[w["o"][0]]),
            Choose(("What was done last?", "Which of these came at the end?"), e, lambda w: e[w["o"][2]]),
            Choose(("What came in the middle?", "What was done second?"), e, lambda w: e[w["o"][1]]),
        ],
        unsaid=("Was {name} paid for the day?", "Did anybody else watch?"),
    )


@situation(
    "sequence", "work",
    "{Thing} for {name} {state}.",
    "As of this morning, {thing} for {name} {state}.",
    "Status from {name}'s file: {thing} {state}.",
    "{name} asked again. The answer: {thing} {state}.",
    "Just so that you know, {name}: {thing} {state}.",
    "We looked into it, and {thing} for {name} {state}.",
    "According to the desk, {thing} that {name} asked about {state}.",
    "{name}, {thing} {state}, so please plan accordingly.",
)
def already(d: Draw) -> Situation:
    thing, verb, being = d.choice((
        ("the new badge", "printed", "in the printer"), ("the parcel", "dispatched", "being packed"), ("the replacement key", "cut", "being cut"),
        ("the invoice", "approved", "being reviewed"), ("the lab sample", "analysed", "being analysed"), ("the bicycle", "repaired", "on the repair stand"),
        ("the certificate", "issued", "being drawn up"), ("the refund", "paid out", "being processed"), ("the curtain", "hemmed", "under the sewing machine"),
    ))
    name = d.name()
    base = {"thing": thing, "Thing": cap(thing), "verb": verb, "name": name}
    states = worlds(base, [
        {"state": s, "k": k} for s, k in d.sample((
            (f"has already been {verb}", 2), (f"has not been {verb} yet", None), (f"is still to be {verb}", None), (f"is {being} at the moment", 1),
            (f"has been {verb} at last", 2), (f"was {verb} on Monday", 2), (f"will not be {verb} after all", -1), (f"has yet to be {verb}", None),
            (f"was about to be {verb} when the plan was dropped for good", -1), (f"will be {verb} next week", 0), (f"is {being} right now", 1),
        ), 5)
    ])
    return Situation(
        f"{thing} for {name}", states,
        [
            ask(lambda w: w["k"] == 2, "Has {thing} been {verb}?", "{Thing} for {name} is {verb} by now.", "Is it done, so that {thing} is {verb}?",
                no=("{Thing} has not been {verb} so far.", "Is {name} without a finished result as yet?")),
            ask(lambda w: w["k"] == -1, "Has it been decided that {thing} will never be {verb}?", no=("{Thing} either has been {verb} or may still be {verb}.",)),
            ask(lambda w: None if w["k"] is None else w["k"] == 1, "Is work on {thing} going on at this moment?", no=("Nobody is at work on {thing} at this moment.",)),
        ],
        unsaid=("Did {name} complain?", "Was there a fee for {thing}?"),
    )
