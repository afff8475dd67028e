"""Exceptions to a rule, conditions, and what must, may and need not be done."""
from .world import Choose, Draw, Rate, Situation, ask, cap, situation, worlds

CLASSES = (
    ("shops in {town}", "open on Sunday", ("the bakery", "the florist", "the pharmacy", "the bookshop")),
    ("rooms on the ground floor of {town} College", "heated", ("the workshop", "the archive", "the music room", "the laundry")),
    ("departments of the {town} branch", "closed on Friday", ("the accounts team", "the help desk", "the workshop", "the post room")),
    ("buildings of {town} Hospital", "connected to the new phone system", ("the chapel", "the pharmacy", "the laboratory", "the kitchen")),
    ("buses in {town}", "free of charge this week", ("the night bus", "the airport bus", "the school bus", "the harbour bus")),
    ("beaches around {town}", "open to dogs", ("the north beach", "the harbour beach", "the west cove", "the long strand")),
    ("trails near {town}", "passable after the storm", ("the ridge trail", "the mill trail", "the lake trail", "the forest loop")),
)


@situation(
    "exceptions", "home",
    "All {group} are {state}{exc}.",
    "Everyone should know that all {group} are {state}{exc}.",
    "The {group} are {state}, every one of them{exc}.",
    "{Exc} all {group} are {state}.",
    "Notice: {group} {state}{exc}.",
    "It has been decided that the {group} will be {state}{exc}.",
    "The council says that all {group} are {state}{exc}.",
    "As things stand, all {group} are {state}{exc}; {a} and {b} are among the {group}.",
    "Visitors to {town} may want to know this: all {group} are {state}{exc}.",
)
def exception(d: Draw) -> Situation:
    group, state, members = d.choice(CLASSES)
    town = d.town()
    a, b, c = d.sample(members, 3)
    base = {"group": group.format(town=town), "state": state, "a": a, "b": b, "c": c, "A": cap(a), "B": cap(b), "town": town}
    word = d.choice((" except {}", ", with the exception of {}", ", {} excepted", " but not {}"))
    lead = d.choice(("With the exception of {},", "Apart from {},", "Except for {},"))
    plus = d.choice((", including {}", ", {} included", ", even {}"))
    options = [({a}, word.format(a), lead.format(a)), ({b}, word.format(b), lead.format(b)), (set(), plus.format(a), f"Including {a},"),
               ({a, b}, word.format(f"{a} and {b}"), lead.format(f"{a} and {b}")), (set(), "", "Without exception,")]
    states = worlds(base, [{"exc": e, "Exc": x, "out": out} for out, e, x in options])
    return Situation(
        f"the {base['group']}", states,
        [
            ask(lambda w: a not in w["out"], "Is {a} {state}?", "The rule covers {a} too: {state}.", no=("{A} is not {state}.", "Is {a} left out of the rule?")),
            ask(lambda w: b not in w["out"], "Is {b} {state}?", no=("{B} is an exception to the rule.", "{B} is not {state}.")),
            ask(lambda w: not w["out"], "Are the {group} {state} without exception?", no=("At least one of the {group} is not {state}.",)),
            ask(lambda w: len(w["out"]) >= 2, "Is there more than one exception?", no=("There is at most one exception.",)),
        ],
        [Choose(("Which of these is an exception?", "Which is left out of the rule?"), [f"only {a}", f"only {b}", "both", "neither"],
                lambda w: "neither" if not w["out"] else "both" if len(w["out"]) == 2 else f"only {next(iter(w['out']))}")],
        unsaid=(f"Was it different in {town} last year?", "Will the rule change soon?"),
    )


EVENTS = (
    ("the picnic takes place", "the picnic", "take place", "it rains", "it rained", "it stayed dry", "rain"),
    ("the ferry sails", "the ferry", "sail", "the wind is above force eight", "the wind was at force ten", "the wind was at force two", "a storm"),
    ("the market opens", "the market", "open", "the square is flooded", "the square was under water", "the square was dry", "a flood"),
    ("the match goes ahead", "the match", "go ahead", "the pitch is frozen", "the pitch was frozen solid", "the pitch was soft and green", "frost"),
    ("the concert takes place outdoors", "the concert", "take place outdoors", "snow is lying", "snow was lying", "there was no snow anywhere", "snow"),
)


@situation(
    "conditions", "home",
    "In {town} {rule}. On the day, {fact}.",
    "The rule in {town} was clear: {rule}. As it turned out, {fact}.",
    "{Rule}, as they say in {town}; and this time {fact}.",
    "{name} had been told that {rule}. On the day itself {fact} in {town}.",
    "On the day {fact} in {town}. The rule there: {rule}.",
    "From the {town} notice board: {rule}. From the weather report for the day: {fact}.",
    "{Rule}. So it stands on the ticket. In {town}, {fact} that day.",
    "What counts in {town} is this: {rule}. Now to the day in question: {fact}.",
)
def condition(d: Draw) -> Situation:
    clause, what, do, cond, hit, miss, _ = d.choice(EVENTS)
    town, name = d.town(), d.name()
    base = {"town": town, "name": name, "what": what, "What": cap(what), "do": do, "cond": cond}
    # rule text, outcome where the condition holds, outcome where it does not
    rules = (
        (f"{clause} unless {cond}", False, True), (f"{clause} even if {cond}", True, True), (f"{clause} only if {cond}", None, False),
        (f"{clause} whether or not {cond}", True, True), (f"if {cond}, {what} will not {do}", False, None), (f"{clause} except when {cond}", False, True),
    )
    chosen = d.sample(rules, 3) if d.random() < 0.5 else d.sample(rules, 1) * 3
    combos = [(text, hit, yes) for text, yes, _ in chosen] + [(text, miss, no) for text, _, no in chosen]
    d.shuffle(combos)
    states = worlds(base, [{"rule": text, "Rule": cap(text), "fact": fact, "out": out, "hit": fact == hit} for text, fact, out in dict.fromkeys(combos)])
    return Situation(
        f"{what} in {town}", states,
        [
            ask(lambda w: w["out"], "By the rule, does {what} {do}?", "Going by what is written, {what} did {do}.", no=("By the rule, {what} does not {do}.", "Is {what} off, going by the rule?")),
            ask(lambda w: w["hit"], "Was this the case on the day: {cond}?", no=("On the day it was not the case that {cond}.",)),
            ask(lambda w: w["out"] is None, "Does the rule leave open whether {what} did {do}?", no=("The rule settles whether {what} did {do}.",)),
            ask(lambda w: True, "Is there a rule for {what}?", no=("Nothing had been laid down for {what}.",)),
        ],
        unsaid=("Did the visitors enjoy the day?", "Were many people in {town} that day?"),
    )


@situation(
    "conditions", "legal",
    "{party} pays the bonus {conn}. {fact_cap}.",
    "The bonus is due from {party} {conn}. According to the file, {fact}.",
    "Bonus clause: {party} pays {conn}. Finding: {fact}.",
    "Under the agreement {party} owes the bonus {conn}, and {fact}.",
    "{fact_cap}. {party} owes the bonus {conn}.",
    "It was agreed that {party} would pay a bonus {conn}. At the end of the year it was noted that {fact}.",
    "For the file on {party}: the bonus is payable {conn}; it is established that {fact}.",
    "Dispute about a bonus. The text of the agreement: {party} pays it {conn}. What happened: {fact}.",
)
def bonus(d: Draw) -> Situation:
    party, name = d.company(), d.name()
    p_yes, p_no, q_yes, q_no, p, q = d.choice((
        (f"{name} stayed the whole year", f"{name} left in May", "sales rose", "sales fell", f"{name} stays the whole year", "sales rise"),
        (f"{name} passed the exam", f"{name} failed the exam", "the project was finished in time", "the project was finished late", f"{name} passes the exam", "the project is finished in time"),
        (f"{name} recruited a colleague", f"{name} recruited nobody", "the site had no accident", "the site had an accident", f"{name} recruits a colleague", "the site has no accident"),
    ))
    op = d.choice(("both", "either", "unless"))
    base = {"party": party, "name": name, "p": p, "q": q}
    conn = {"both": f"if {p} and {q}", "either": f"if {p} or {q}, one of the two being enough", "unless": f"if {p}, unless {q}"}
    due = {"both": lambda x, y: x and y, "either": lambda x, y: x or y, "unless": lambda x, y: x and not y}
    cases = [(o, x, y) for o in ([op] if d.random() < 0.6 else list(conn)) for x in (True, False) for y in (True, False)]
    d.shuffle(cases)
    text = lambda x, y: f"{p_yes if x else p_no} and {q_yes if y else q_no}"
    states = worlds(base, [{"conn": conn[o], "fact": text(x, y), "fact_cap": cap(text(x, y)), "due": due[o](x, y), "x": x, "y": y, "yes_p": p_yes, "yes_q": q_yes} for o, x, y in cases])
    return Situation(
        f"the bonus from {party}", states,
        [
            ask(lambda w: w["due"], "Is the bonus due?", "{party} has to pay the bonus.", "Under this clause, does {party} owe the bonus?", no=("The bonus is not due.", "Can {party} keep the bonus money?")),
            ask(lambda w: w["x"], "Is it so that {yes_p}?", no=("It is not so that {yes_p}.",)),
            ask(lambda w: w["y"], "Does the text say that {yes_q}?", no=("It is wrong to say that {yes_q}.",)),
            ask(lambda w: w["x"] and w["y"], "Are both things the case: that {yes_p} and that {yes_q}?", no=("At least one of the two is not the case: that {yes_p}, that {yes_q}.",)),
        ],
        unsaid=("Is the bonus larger than a month's pay?", "Has {party} paid a bonus before?"),
    )


ACTS = (
    ("wear a helmet", "visitors"), ("sign the visitors' book", "guests"), ("leave coats in the cloakroom", "members of the audience"), ("bring a packed lunch", "pupils"),
    ("use the side entrance", "suppliers"), ("keep the receipt", "customers"), ("register online", "participants"), ("take photographs", "visitors"), ("park in the yard", "tenants"),
    ("lock the bicycle shed", "residents"), ("pay by card", "customers"), ("speak to the press", "staff members"), ("open the windows at night", "tenants"), ("bring a dog", "campers"),
)
# wording, allowed, required, allowed not to
MODALS = (
    ("{who} must {act}", True, True, False), ("{who} must not {act}", False, False, True), ("{who} may {act}", True, False, True), ("{who} need not {act}", None, False, True),
    ("{who} are required to {act}", True, True, False), ("{who} are free to {act} or not", True, False, True), ("{who} are not allowed to {act}", False, False, True),
    ("{who} do not have to {act}", None, False, True), ("{who} are forbidden to {act}", False, False, True), ("{who} are permitted to {act}", True, False, True), ("it is up to {who} whether to {act}", True, False, True),
)


@situation(
    "modality", "work",
    "In {town}, {m}.",
    "House rules, {town}: {m}.",
    "Please note for {town}: {m}, without exception.",
    "{name}, who looks after the site in {town}, says that {m}.",
    "From the {town} handbook: \"{M}.\"",
    "{M} in {town}, as the new sign says.",
    "The rule in {town} has changed. From now on {m}.",
    "\"{M} here,\" says the notice in {town}, signed by {name}.",
    "{name} asked the {town} office and was told that {m}.",
    "If you are going to {town}, remember that {m}.",
)
def modal(d: Draw) -> Situation:
    act, who = d.choice(ACTS)
    town, name = d.town(), d.name()
    base = {"act": act, "who": who, "Who": cap(who), "town": town, "name": name}
    states = worlds(base, [{"m": (t := text.format(who=who, act=act)), "M": cap(t), "may": may, "must": must, "skip": skip} for text, may, must, skip in d.sample(MODALS, 5)])
    kind = lambda w: "required" if w["must"] else "forbidden" if w["may"] is False else "optional"
    return Situation(
        f"the rule for {who} in {town}", states,
        [
            ask(lambda w: w["must"], "Do {who} have to {act} in {town}?", "It is compulsory for {who} to {act}.", no=("{Who} are under no duty to {act}.",)),
            ask(lambda w: w["may"], "Are {who} allowed to {act} in {town}?", "It is all right for {who} to {act}.", no=("It is against the rule for {who} to {act}.",)),
            ask(lambda w: w["skip"], "Is it all right for {who} not to {act}?", no=("It breaks the rule if {who} do not {act}.",)),
        ],
        [Choose(("For {who} in {town}, to {act} is", "What does the rule make of it when {who} {act}?"), ["required", "forbidden", "optional"], kind)]
        if all(w["may"] is not None for w in states) else [],
        unsaid=(f"Do most {who} in {town} keep to the rule?", "Is there a fine?"),
    )


@situation(
    "modality", "legal",
    "{party} {m} {act} {when}.",
    "Under this clause {party} {m} {act} {when}.",
    "The parties agree that {party} {m} {act} {when}.",
    "{When}, {party} {m} {act}.",
    "As amended, the clause reads: \"{party} {m} {act} {when}.\"",
    "{name}, for {party}, has confirmed that {party} {m} {act} {when}.",
    "Neither side disputes that {party} {m} {act} {when}.",
    "Section on duties: {party} {m} {act} {when}; all else is left to a later agreement.",
)
def clause(d: Draw) -> Situation:
    party, name = d.company(), d.name()
    act, when = d.choice((("raise the price", "once a year"), ("inspect the premises", "on any working day"), ("use subcontractors", "during the term"), ("insure the goods", "while they are in transit"),
                          ("publish the results", "after the project has ended"), ("keep the records", "for ten years"), ("repair the roof", "before winter"), ("sublet the flat", "during the summer")))
    base = {"party": party, "name": name, "act": act, "when": when, "When": cap(when)}
    states = worlds(base, [{"m": m, "k": k} for m, k in d.sample((("shall", 2), ("shall not", 0), ("may", 1), ("may, but need not,", 1), ("is obliged to", 2), ("is entitled to", 1), ("is not permitted to", 0), ("undertakes to", 2), ("has the right to", 1), ("must under no circumstances", 0)), 5)])
    levels = ["forbidden", "allowed", "obligatory"]
    return Situation(
        f"the clause on {party}", states,
        [
            ask(lambda w: w["k"] == 2, "Is {party} bound to {act} {when}?", "{party} would be in breach if it did not {act}.", no=("{party} is not bound to {act}.",)),
            ask(lambda w: w["k"] >= 1, "Does the clause let {party} {act} {when}?", "{party} breaks no clause if it should {act} {when}.", no=("{party} is barred from doing this {when}: {act}.",)),
            ask(lambda w: w["k"] <= 1, "Would it be in line with the clause if {party} did not {act}?", no=("Not to {act} would be a breach by {party}.",)),
        ],
        [Choose(("What does the clause make of it if {party} were to {act}?",), levels, lambda w: levels[w["k"]])],
        [Rate(("How strictly is {party} bound to {act}?",), ["it must not", "it may", "it must"], lambda w: w["k"])],
        ("Has {party} done so before?", "Does the other side agree with {party} on most things?"),
    )


@situation(
    "modality", "work",
    "{name} {m} {do} on {day}.",
    "One more thing about the week: {name} {m} {do} on {day}.",
    "For the plan: {name} {m} {do} on {day}.",
    "{other} wrote that {name} {m} {do} on {day}.",
    "On {day} {name} {m} {do}, says {other}.",
    "Weekly note by {other}: {name} {m} {do} on {day}; the rest is as planned.",
    "{other} has it from the office that {name} {m} {do} on {day}.",
    "As {other} sees it, {name} {m} {do} on {day}.",
)
def likely(d: Draw) -> Situation:
    name, other = d.names(2)
    do = d.choice(("come to the workshop", "visit the depot", "lead the tour", "open the exhibition", "close the account", "meet the auditors", "move to the new desk"))
    base = {"name": name, "other": other, "do": do, "day": d.choice(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"))}
    states = worlds(base, [{"m": m, "k": k} for m, k in d.sample((("will certainly", 4), ("will probably", 3), ("may or may not", 2), ("might", 2), ("will hardly", 1), ("will definitely not", 0), ("is unlikely to", 1), ("is sure to", 4), ("cannot possibly", 0), ("is very likely to", 3)), 5)])
    levels = ["certainly not", "unlikely", "open", "likely", "certain"]
    return Situation(
        f"{name} on {base['day']}", states,
        [
            ask(lambda w: w["k"] == 4, "Is it settled that {name} will {do} on {day}?", no=("It is not certain that {name} will {do}.",)),
            ask(lambda w: w["k"] == 0, "Is it ruled out that {name} will {do} on {day}?", no=("It remains possible that {name} will {do}.",)),
            ask(lambda w: None if w["k"] == 2 else w["k"] > 2, "Is {name} more likely than not to {do} on {day}?", no=("Is {name} more likely not to {do}?",)),
        ],
        rates=[Rate(("How likely is it that {name} will {do} on {day}?",), levels, lambda w: w["k"]),
               Rate(("Chance that {name} will {do}, from 0 (none) to 4 (certain)",), ["0", "1", "2", "3", "4"], lambda w: w["k"])],
        unsaid=("Does {name} like the idea?", "Did {other} speak to {name} in person?"),
    )
