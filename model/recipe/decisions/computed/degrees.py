"""Scales of 2 to 11 levels: numbers as labels, described levels, degrees in words, shares and frequencies."""
from ...examples import Option
from .world import Draw, Rate, Situation, ask, band, cap, situation, worlds

# (what is rated, question, phrases from lowest to highest, names of the levels)
DEGREES = (
    ("the {x} stay", "How content is {name} with the stay?", ("calls the stay the worst ever", "found the stay rather disappointing", "found the stay neither good nor bad", "found the stay quite good", "calls the stay perfect in every way"),
     ("very discontent", "discontent", "neutral", "content", "very content")),
    ("the pain", "How strong is {name}'s pain?", ("feels no pain at all", "feels a slight ache now and then", "has pain that can be borne with tablets", "has strong pain and hardly sleeps", "screams with unbearable pain"), ("none", "slight", "moderate", "strong", "unbearable")),
    ("the job", "How urgent is {name}'s request?", ("says it can wait for months", "says some time in the next weeks will do", "would like it done this week", "needs it by tomorrow", "needs it this very minute, people are in danger"), ("not urgent", "low", "medium", "high", "critical")),
    ("the tone", "How angry is {name}?", ("writes in perfect calm", "writes with a hint of irritation", "is clearly annoyed", "is very angry and swears", "is wild with rage and threatens violence"), ("calm", "slightly irritated", "annoyed", "very angry", "furious")),
    ("the road", "How busy was the road that {name} took?", ("met nobody at all on the road", "met a car now and then", "drove in steady traffic", "crawled along in dense traffic", "stood still for hours in a jam"), ("empty", "quiet", "steady", "dense", "jammed")),
    ("the task", "How hard was the task for {name}?", ("did the task with eyes closed, it was child's play", "found the task easy enough", "had to think a little, an average task", "struggled hard with the task", "gave up, as the task was impossible"), ("trivial", "easy", "average", "hard", "impossible")),
    ("the proof", "How sure is {name}?", ("has no idea and says so", "has a vague feeling about it", "thinks it more likely than not", "is fairly sure", "is absolutely certain and would swear to it"), ("no idea", "vague feeling", "leaning", "fairly sure", "certain")),
    ("the wear", "How worn is {name}'s bicycle?", ("has a bicycle fresh from the factory", "has a bicycle with a scratch or two", "has a bicycle that shows its years but runs well", "has a badly rusted bicycle with a bent wheel", "has a bicycle that is only good for scrap"), ("as new", "lightly used", "used", "badly worn", "scrap")),
)


@situation(
    "scales", "home",
    "{name} {phrase}.",
    "By all accounts {name} {phrase}.",
    "{other} passes on that {name} {phrase}; {other} sees it differently.",
    "Note by {other}: {name} {phrase}.",
    "When asked, {name} {phrase}, or so it seems to {other}.",
    "It was plain to everyone that {name} {phrase}.",
    "This is how it stands: {name} {phrase}, and {other} has nothing to add.",
    "What {other} wrote down in the end was that {name} {phrase}.",
    "Summary: {name} {phrase}.",
    "{other} reports from the conversation: {name} {phrase}.",
)
def degree(d: Draw) -> Situation:
    _, question, phrases, names = d.choice(DEGREES)
    name, other = d.names(2)
    base = {"name": name, "other": other, "q": question.format(name=name), "mid": names[2], "top": names[4], "low": names[0]}
    states = worlds(base, [{"phrase": p, "k": k} for k, p in enumerate(phrases)])
    rates = []
    rates.append(Rate(("{q}",), list(names), lambda w: w["k"]))
    rates.append(Rate(("{q} From 1 (lowest) to 5 (highest)", "{q} (1 = " + names[0] + ", 5 = " + names[4] + ")"), ["1", "2", "3", "4", "5"], lambda w: w["k"]))
    rates.append(Rate(("{q}", "{q} Choose the level that fits."), [Option(str(i + 1), n) for i, n in enumerate(names)], lambda w: w["k"]))
    rates.append(Rate(("{q}",), [names[0], names[2], names[4]], lambda w: {0: 0, 2: 1, 4: 2}.get(w["k"])))
    rates.append(Rate(("{q}",), [names[0], names[4]], lambda w: {0: 0, 1: 0, 3: 1, 4: 1}.get(w["k"])))
    rates.append(Rate(("{q} On a scale from 0 to 4",), ["0", "1", "2", "3", "4"], lambda w: w["k"]))
    rates.append(Rate(("{q}",), [names[0], names[1], names[3], names[4]], lambda w: {0: 0, 1: 1, 3: 2, 4: 3}.get(w["k"])))
    return Situation(
        f"{name}, as {other} tells it", states,
        [
            ask(lambda w: w["k"] >= 3, "{q} Is it above \"{mid}\"?", no=("{q} Is it \"{mid}\" or below?",)),
            ask(lambda w: w["k"] == 4, "{q} Is it \"{top}\"?", "\"{top}\" is the level that fits {name}.", no=("{q} Is it less than \"{top}\"?",)),
            ask(lambda w: w["k"] == 0, "{q} Is it \"{low}\", the lowest of all?", no=("{q} Is it more than \"{low}\"?",)),
            ask(lambda w: w["k"] >= 2, "{q} Does it reach \"{mid}\" at least?", no=("{q} Does it stay below \"{mid}\"?",)),
        ],
        rates=rates,
        unsaid=("Is {other} older than {name}?", "Has {name} met {other} before this year?"),
    )


@situation(
    "scales", "work",
    "{name} gave {thing} {v} out of {top} points.",
    "{thing_cap} got {v} of {top} points from {name}; {other} gave it {u}.",
    "Rating of {thing}: {name} {v}/{top}, {other} {u}/{top}.",
    "{other} gave {thing} {u} points out of {top}. {name} gave it {v}.",
    "From {name} there were {v} points for {thing}, where {top} is the most that can be given.",
    "On the card for {thing}, {name} ticked {v} on a scale that ends at {top}.",
    "{name} to {other}: \"{thing_cap}? I'd say {v} out of {top}.\"",
    "Jury sheet, {thing}. {name}: {v}. {other}: {u}. Highest mark: {top}.",
    "\"{v} out of {top} for {thing}, that is my last word,\" wrote {name}.",
    "{name} thought for a while and then put down {v} of {top} points for {thing}.",
)
def points(d: Draw) -> Situation:
    top = d.choice((3, 4, 5, 6, 7, 7, 8, 8, 9, 9, 10, 10))
    start = d.choice((0, 1))
    name, other = d.names(2)
    thing = d.choice(("the chocolate cake", "the app", "the poem", "the hotel", "the robot", "the cheese", "the short film", "the garden", "the essay", "the radio play"))
    levels = [str(i) for i in range(start, top + 1)]
    values = d.sample(range(start, top + 1), min(5, top + 1 - start))
    mid = (top + start) // 2
    u = d.choice([i for i in range(start, top + 1)])
    base = {"name": name, "other": other, "thing": thing, "thing_cap": cap(thing), "top": top, "u": u, "mid": mid}
    described = [Option(level, f"{level} of {top} points") for level in levels]
    return Situation(
        f"{thing} and {name}", worlds(base, [{"v": v} for v in values]),
        [
            ask(lambda w: w["v"] > mid, "Did {name} give {thing} more than {mid} points?", no=("{name} gave {thing} {mid} points at most.",)),
            ask(lambda w: w["v"] == top, "Did {thing} get the highest mark from {name}?", no=("{name} gave less than the highest mark.",)),
            ask(lambda w: w["v"] < mid, "Is {name}'s mark for {thing} below {mid}?", no=("{name}'s mark for {thing} is {mid} or better.",)),
        ],
        rates=[Rate(("How many points did {name} give {thing}?", "{name}'s mark for {thing}", "Points from {name}"), d.choice((levels, described, levels)), lambda w: w["v"] - start),
               Rate(("How well did {name} rate {thing}?",), ["in the lower half", "in the upper half"], lambda w: None if w["v"] * 2 == top + start else int(w["v"] * 2 > top + start)),
               ],
        unsaid=("Did {thing} win a prize?", "Did {name} pay for {thing}?"),
    )


@situation(
    "scales", "tech",
    "{v} percent of {thing} in {town} is done.",
    "Progress on {thing} in {town}: {v} percent; planned: {u} percent.",
    "{name} reports that {thing} in {town} is {v} percent complete.",
    "In {town}, {v} out of every hundred parts of {thing} are finished, {name} says.",
    "{name}'s status for {town}: {thing} at {v} %, where {u} % had been planned.",
    "The plan says {u} percent by now. In fact {thing} in {town} has got to {v} percent.",
    "{thing_cap} in {town}: planned {u} %, done {v} %, contact {name}.",
    "{town} again: of {thing}, {v} percent is finished, says {name}.",
)
def progress(d: Draw) -> Situation:
    town, name = d.town(), d.name()
    thing = d.choice(("the cable work", "the migration", "the paint job", "the inventory", "the survey", "the tree planting", "the data entry", "the wiring"))
    values = [d.randrange(10 * k, 10 * k + 10) for k in d.sample(range(0, 10), 4)] + ([100] if d.random() < 0.5 else [d.randrange(1, 9)])
    u = d.choice((25, 40, 50, 60, 75, 80))
    base = {"town": town, "name": name, "thing": thing, "thing_cap": cap(thing), "u": u}
    n = d.choice((2, 3, 4, 5, 6, 7, 7, 8, 8, 9, 9, 10, 11))
    bounds = [round(100 * i / n) for i in range(1, n)]
    if n == 11:
        bounds = [10 * i for i in range(1, 11)]
    edges = [0, *bounds]
    described = [f"from {low} percent" if low else f"under {bounds[0]} percent" for low in edges]
    ranges = [f"{low} to {high - 1} percent" for low, high in zip(edges, [*bounds, 101])]
    levels = d.choice((described, ranges, ranges, [Option(str(i + 1), text) for i, text in enumerate(ranges)]))
    return Situation(
        f"{thing} in {town}", worlds(base, [{"v": v} for v in values]),
        [
            ask(lambda w: w["v"] >= u, "Is {thing} in {town} at {u} percent or further?", no=("{thing_cap} in {town} has not reached {u} percent.",)),
            ask(lambda w: w["v"] >= 50, "Is at least half of {thing} done?", no=("Less than half of {thing} is done.",)),
            ask(lambda w: w["v"] >= 90, "Is no more than a tenth of {thing} left to do?", no=("More than a tenth of {thing} is left to do.",)),
        ],
        rates=[Rate(("How far has {thing} in {town} got?", "Progress of {thing}", "Which level of progress fits {thing}?"), levels, lambda w: band(w["v"], bounds)),
               Rate(("How many full tenths of {thing} are done?", "{thing_cap} in {town}, in full tenths"), [str(i) for i in range(11)], lambda w: w["v"] // 10)],
        unsaid=("Is {name} responsible for the delay?", "Does the work in {town} cost more than planned?"),
    )


@situation(
    "scales", "home",
    "{name} {does} {freq}.",
    "{freq_cap} {name} {does}.",
    "{other} says that {name} {does} {freq}.",
    "Ask {other}: {name} {does} {freq}.",
    "In the family they say that {name} {does} {freq}.",
    "{name} {does} {freq}, and {other} does so every second day.",
    "From {other}'s letter: \"{name} {does} {freq}.\"",
    "It is well known that {name} {does} {freq}; {other} can tell stories about it.",
)
def frequency(d: Draw) -> Situation:
    name, other = d.names(2)
    does, do = d.choice((("goes swimming", "go swimming"), ("writes to the council", "write to the council"), ("plays the organ", "play the organ"), ("cooks for the neighbours", "cook for the neighbours"), ("takes the sleeper train", "take the sleeper train")))
    base = {"name": name, "other": other, "does": does, "do": do}
    steps = (("once every ten years", 0.1), ("once a year", 1), ("twice a year", 2), ("once a month", 12), ("every week", 52), ("three times a week", 156), ("every single day", 365))
    names = ["less than once a year", "once or twice a year", "about once a month", "about once a week", "several times a week", "daily"]
    states = worlds(base, [{"freq": f, "freq_cap": cap(f), "v": v} for f, v in d.sample(steps, 5)])
    return Situation(
        f"{name} and how often", states,
        [
            ask(lambda w: w["v"] >= 52, "Does {name} {do} at least once a week?", no=("{name} does so less than once a week.",)),
            ask(lambda w: w["v"] >= 12, "Does {name} {do} once a month or more often?", no=("{name} does so less than once a month.",)),
            ask(lambda w: w["v"] <= 2, "Does {name} {do} twice a year at the most?", no=("{name} does so more than twice a year.",)),
        ],
        rates=[Rate(("How often does {name} {do}?",), names, lambda w: band(w["v"], (1, 12, 52, 156, 365))),
               Rate(("How often does {name} {do}?", "How frequent is it?"), ["rarely", "monthly", "weekly or more often"], lambda w: band(w["v"], (12, 52))),
               Rate(("How often does {name} {do}? 1 is the rarest, 6 the most frequent.",), [Option(str(i + 1), n) for i, n in enumerate(names)], lambda w: band(w["v"], (1, 12, 52, 156, 365)))],
        unsaid=("Does {name} enjoy it?", "Did {other} teach {name}?"),
    )


@situation(
    "scales", "work",
    "Waiting time at the {town} desk for {name}: {v} minutes.",
    "{name} waited {v} minutes at the {town} desk.",
    "At the desk in {town} it took {v} minutes until {name} was called, against {u} for the next in line.",
    "{name} stood in line for {v} minutes in {town}.",
    "After {v} minutes at the {town} desk, it was {name}'s turn.",
    "{name}'s ticket in {town}: drawn and called {v} minutes later.",
    "The clock showed that {v} minutes had gone by when the {town} desk called {name}.",
    "{town}, front desk: {name}, {v} minutes in the queue, then served.",
)
def waiting(d: Draw) -> Situation:
    town, name = d.town(), d.name()
    n = d.choice((2, 3, 4, 5, 6, 7, 7, 8, 8))
    bounds = sorted(d.sample((5, 10, 15, 20, 30, 45, 60, 90, 120), n - 1))
    labels = [f"less than {bounds[0]} minutes", *(f"{a} to {b - 1} minutes" for a, b in zip(bounds, bounds[1:])), f"{bounds[-1]} minutes or more"]
    values = d.sample((2, 4, 7, 12, 17, 25, 35, 50, 70, 100, 140), 5)
    m = d.choice((15, 20, 30, 45, 60))
    base = {"town": town, "name": name, "u": d.randrange(3, 60), "m": m}
    letters = [Option("ABCDEFGH"[i], text) for i, text in enumerate(labels)]
    grades = [Option(str(i + 1), text) for i, text in enumerate(labels)]
    return Situation(
        f"{name} in {town}", worlds(base, [{"v": v} for v in values]),
        [
            ask(lambda w: w["v"] > m, "Did {name} wait more than {m} minutes?", no=("{name} waited {m} minutes at the most.",)),
            ask(lambda w: w["v"] >= 60, "Did {name} wait an hour or longer?", no=("{name} waited less than an hour.",)),
            ask(lambda w: w["v"] < 10, "Was it {name}'s turn in under ten minutes?", no=("It took ten minutes or more until it was {name}'s turn.",)),
        ],
        rates=[Rate(("How long did {name} wait?", "Waiting time of {name}", "Which band does {name}'s wait fall in?"), d.choice((labels, labels, letters, grades)), lambda w: band(w["v"], bounds))],
        unsaid=("Did {name} get what {name} came for?", "Was the desk in {town} short of staff?"),
    )
