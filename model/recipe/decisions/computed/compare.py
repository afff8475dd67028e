"""Amounts and units, more and less, at least and at most, thresholds."""
from .world import Choose, Draw, Rate, Situation, ask, band, cap, money, situation, within, worlds

GOODS = (
    "paper,ink,soap,flour,rope,paint,gravel,seed potatoes,candles,firewood,tea,wax,linen,timber,honey,wool,tiles,nails,light bulbs,coffee beans"
).split(",")
COUNTED = "apples,chairs,tickets,parcels,books,bottles,lamps,boxes,cables,postcards,tiles,plates,umbrellas,notebooks,jars,keys,cushions,batteries".split(",")
UNITS = (
    ("kg", "g", 1000, "weighs", "weight", "heavier"), ("m", "cm", 100, "is as long as", "length", "longer"), ("litres", "ml", 1000, "holds", "volume", "larger"),
    ("hours", "minutes", 60, "takes", "duration", "longer"), ("km", "m", 1000, "spans", "distance", "longer"), ("weeks", "days", 7, "lasts", "duration", "longer"),
)


@situation(
    "amounts", "work",
    "{name} spent {a} on {x} and {b} on {y}; the budget was {limit}.",
    "The budget for {name}'s project is {limit}. So far {a} went on {x} and {b} on {y}.",
    "Receipts from {name}: {x} {a}, {y} {b}. Approved: {limit} in all.",
    "{name} may spend {limit}. The bill lists {x} for {a} and {y} for {b}.",
    "{X} cost {name} {a}, {y} another {b}, and {limit} had been set aside for both together.",
    "Out of {limit}, {name} paid {a} for {x}, then {b} for {y}.",
    "{limit} was what {name} had for the two purchases: {x} at {a}, {y} at {b}.",
    "{name} was allowed {limit} for both. The {y} came to {b} and the {x} to {a}.",
)
def budget(d: Draw) -> Situation:
    x, y = d.sample(GOODS, 2)
    name, sign = d.name(), d.choice(("{} euros", "${}", "£{}", "EUR {}"))
    limit = d.randrange(8, 90) * 10
    b = d.randrange(2, limit // 10 - 2) * 5
    write = lambda value: sign.format(money(value))
    sums = [limit - d.randrange(11, 40), limit, limit + d.randrange(1, 10), limit + d.randrange(30, 90)]
    base = {"name": name, "x": x, "y": y, "X": cap(x), "limit": write(limit), "b": write(b)}
    states = worlds(base, [{"a": write(s - b), "sum": s, "na": s - b} for s in sums])
    return Situation(
        f"{name}'s purchases of {x} and {y}", states,
        [
            ask(lambda w: w["sum"] <= limit, "Did {name} stay within the budget?", "The two purchases together cost no more than {limit}.",
                no=("Did {name} overspend?", "The two purchases together exceed {limit}.", "Is {name} over budget?")),
            ask(lambda w: w["sum"] < limit, "Is some of the budget left?", no=("Nothing of the budget is left.",)),
            ask(lambda w: w["na"] > b, "Did the {x} cost more than the {y}?", no=("The {x} cost no more than the {y}.",)),
            ask(lambda w: True, "Did {name} buy {y}?", no=("{name} bought neither of the two things.",)),
        ],
        [Choose(("How much was spent altogether?", "What do the two purchases come to?"), [write(s) for s in sums], lambda w: write(w["sum"]))],
        [Rate(("How does the spending compare with the budget?",), ["below it", "exactly on it", "above it"], lambda w: band(w["sum"], (limit, limit + 0.01)))],
        ("Did {name} pay in cash?", "Were the {y} of good quality?", "Does {name} plan to buy more {x}?"),
    )


@situation(
    "amounts", "home",
    "{name}'s {thing} {verb} {a}; the limit is {b}.",
    "The limit is {b}, and {name}'s {thing} {verb} {a}.",
    "Limit: {b}. {name}'s {thing}: {a}.",
    "Allowed are up to {b}. By the label, {name}'s {thing} {verb} {a}.",
    "{name} measured the {thing}: {a}. Anything over {b} is turned away.",
    "No more than {b}, the sign says; {name}'s {thing} {verb} {a}.",
    "{name} was told that the {thing} {verb} {a}, while {b} is the most that is accepted.",
    "At the counter they told {name} that {b} is the limit, and the {thing} {verb} {a}.",
)
def unit_limit(d: Draw) -> Situation:
    big, small, factor, verb, quantity, _ = d.choice(UNITS)
    thing = d.choice({"weight": ("suitcase", "parcel", "dog basket", "crate"), "length": ("ski bag", "plank", "curtain rod", "surfboard"),
                      "volume": ("canister", "bottle", "drum", "tank"), "duration": ("film", "lesson", "treatment", "course"), "distance": ("route", "relay leg", "cable run")}[quantity])
    name = d.name()
    limit = d.choice((1, 2, 3, 4, 5)) * factor // (1 if factor == 7 else d.choice((1, 2)))
    limit = max(limit, factor // 2 if factor != 7 else factor)
    text = lambda value, unit: f"{value:,} {small}" if unit == "small" else f"{value / factor:g} {big}"
    step = max(1, factor // 20)
    values = [limit - 6 * step if limit > 6 * step else max(1, limit - step), max(1, limit - step), limit + step, limit + 9 * step]
    values = list(dict.fromkeys(values))
    limit_unit = "big" if (limit * 100 // factor) * factor == limit * 100 else "small"
    value_unit = "small" if limit_unit == "big" else "big"
    if factor in (7, 60):
        limit_unit, value_unit = ("big" if limit % factor == 0 else "small"), "small"
    base = {"name": name, "thing": thing, "verb": verb, "b": text(limit, limit_unit)}
    if limit == factor:
        base["b"] = base["b"].removesuffix("s") if base["b"].startswith("1 ") else base["b"]
    states = worlds(base, [{"a": text(v, value_unit), "v": v} for v in values])
    return Situation(
        f"{name}'s {thing}", states,
        [
            ask(lambda w: w["v"] <= limit, "Is {name}'s {thing} within the limit?", "{name}'s {thing} is acceptable.", "Does the {thing} comply with the limit?",
                no=("Is {name}'s {thing} over the limit?", "The {thing} exceeds what is allowed.")),
            ask(lambda w: w["v"] < limit, "Is there still something to spare below the limit?", no=("Nothing is to spare below the limit.",)),
            ask(lambda w: True, "Is a limit stated?", "There is an upper limit.", no=("There is no limit at all.",)),
        ],
        unsaid=("Did {name} buy the {thing} this year?", "Has {name} been charged extra?", "Does the {thing} belong to somebody else?"),
    )


@situation(
    "amounts", "work",
    "There were {n} {things} in {town}; {sold} were sold and {new} came in.",
    "Stock in {town}: {n} {things} in the morning, {sold} sold, {new} delivered.",
    "{town} started the day with {n} {things}, sold {sold} of them and received {new} more.",
    "Of the {n} {things} in {town}, {sold} went out; {new} were added in the afternoon.",
    "The {town} shop took delivery of {new} {things} on top of the {n} it had, and sold {sold}.",
    "Count for {town}, {things}: opening {n}, out {sold}, in {new}.",
    "{sold} {things} left the store in {town} and {new} arrived, where {n} had been before.",
    "When the {town} store opened it held {n} {things}. During the day {new} were added and {sold} taken away.",
)
def stock(d: Draw) -> Situation:
    things, town = d.choice(COUNTED), d.town()
    n, sold = d.randrange(30, 90), d.randrange(8, 25)
    news = [sold - d.randrange(3, 7), sold, sold + d.randrange(3, 9), sold + d.randrange(20, 40)]
    base = {"things": things, "town": town, "n": n, "sold": sold}
    states = worlds(base, [{"new": k, "left": n - sold + k} for k in news])
    bound = n + d.randrange(10, 19)
    base_q = {"bound": bound}
    states = [{**w, **base_q} for w in states]
    return Situation(
        f"the {things} in {town}", states,
        [
            ask(lambda w: w["left"] > n, "Are there more {things} in {town} than at the start?", "The stock of {things} in {town} has grown.",
                no=("The stock of {things} in {town} has not grown.", "Are there at most as many {things} as at the start?")),
            ask(lambda w: w["left"] < n, "Has the stock of {things} shrunk?", no=("{town} has at least as many {things} as before.",)),
            ask(lambda w: w["left"] >= bound, "Are there at least {bound} {things} in {town} now?", no=("Fewer than {bound} {things} are there now.",)),
            ask(lambda w: True, "Did any {things} leave {town} that day?", no=("Not a single one of the {things} left {town} that day.",)),
        ],
        [Choose(("How many {things} are there in {town} in the end?", "What is the final count of {things}?"), [str(n - sold + k) for k in news], lambda w: str(w["left"]))],
        [Rate(("How did the number of {things} change?",), ["it fell", "it stayed the same", "it rose"], lambda w: band(w["left"], (n, n + 1)))],
        ("Did the {things} cost more than last month?", "Is the shop in {town} profitable?"),
    )


@situation(
    "amounts", "work",
    "{thing_cap} costs {price}; {name} gets {pct} percent off and has {cash}.",
    "{name} has {cash} to spend. {thing_cap} is marked {price}, less {pct} percent.",
    "Price of {thing}: {price}. Discount for {name}: {pct} %. Money at hand: {cash}.",
    "With {cash} in hand {name} looks at {thing}, priced at {price} before a discount of {pct} percent.",
    "The shop takes {pct} percent off {thing} for {name}. Its price before that is {price}, and {name} has {cash}.",
    "{name}, who has {cash}, was offered {thing} for {price} minus {pct} percent.",
    "{pct} percent off for {name}: that is the deal on {thing}, list price {price}. In the purse: {cash}.",
    "{name} counted the money, {cash}, and then the price of {thing}, {price} less {pct} percent.",
)
def discount(d: Draw) -> Situation:
    name, thing = d.name(), d.choice(("the wardrobe", "the camera", "the tent", "the piano stool", "the carpet", "the drill", "the coat", "the aquarium"))
    price = d.randrange(4, 30) * 20
    cash = int(price * d.choice((0.65, 0.75, 0.85)))
    base = {"name": name, "thing": thing, "thing_cap": cap(thing), "price": f"{price} euros", "cash": f"{cash} euros"}
    states = worlds(base, [{"pct": p, "pay": price * (100 - p) / 100} for p in (5, 10, 20, 30, 40, 50)])
    half = price / 2
    return Situation(
        f"{name} and {thing}", states,
        [
            ask(lambda w: w["pay"] <= cash, "Can {name} afford {thing} at the reduced price?", "{name} has enough money for {thing}.",
                no=("Is {name} short of money for {thing}?", "Even with the discount {thing} costs more than {name} has.")),
            ask(lambda w: w["pay"] <= price * 0.75, "Is at least a quarter of the price taken off?", no=("The discount is less than a quarter.",)),
            ask(lambda w: w["pay"] <= half, "Is {thing} sold at half its price or less?", no=("{name} still pays more than half the price.",)),
            ask(lambda w: cash >= price, "Could {name} pay the full price?", no=("The full price is more than {name} has.",)),
        ],
        [Choose(("What does {name} have to pay for {thing}?", "What is the price after the discount?"), [f"{money(price * (100 - p) / 100)} euros" for p in (5, 10, 20, 30, 40, 50)], lambda w: f"{money(w['pay'])} euros")],
        unsaid=("Did {name} buy {thing}?", "Is {thing} new?"),
    )


@situation(
    "comparison", "home",
    "{a} picked {na} {things}, {b} picked {nb}.",
    "{b} has {nb} {things} and {a} has {na}.",
    "{things_cap}: {a} {na}, {b} {nb}.",
    "{a} came home with {na} {things}, {b} with {nb} of them.",
    "While {b} collected {nb} {things}, {a} collected {na}.",
    "Number of {things} that {b} gave away: {nb}. Number that {a} gave away: {na}.",
    "{nb} {things} were counted in {b}'s basket; in {a}'s there were {na}.",
    "{a} sold {na} {things} at the fair. For {b} it was {nb}.",
)
def counts(d: Draw) -> Situation:
    a, b = d.names(2)
    things, nb = d.choice(COUNTED), d.randrange(4, 30)
    base = {"a": a, "b": b, "things": things, "things_cap": cap(things), "nb": d.number(nb), "twice": 2 * nb}
    values = [max(1, nb - d.randrange(2, 5)), nb, nb + d.randrange(1, 4), 2 * nb + d.randrange(0, 4)]
    states = worlds(base, [{"na": d.number(v), "v": v} for v in values])
    levels = ["fewer", "the same number", "more, but less than twice as many", "at least twice as many"]
    return Situation(
        f"{a} and {b} and the {things}", states,
        [
            ask(lambda w: w["v"] > nb, "Is {a}'s number of {things} higher than {b}'s?", "{a} is ahead of {b} in {things}.",
                no=("{a}'s number of {things} does not exceed {b}'s.", "Does {b} have as many as {a}, or more?")),
            ask(lambda w: w["v"] < nb, "Are there fewer {things} for {a} than for {b}?", no=("{a}'s count is at least as high as {b}'s.",)),
            ask(lambda w: w["v"] == nb, "Do {a} and {b} have equal numbers?", no=("The numbers of {a} and {b} differ.",)),
            ask(lambda w: w["v"] >= 2 * nb, "Is {a}'s number at least double {b}'s?", no=("{a}'s number is less than double {b}'s.",)),
        ],
        [Choose(("Who has the higher number of {things}?",), [a, b, "neither"], lambda w: a if w["v"] > nb else b if w["v"] < nb else "neither")],
        [Rate((f"Compared with {b}, how many {things} does {a} have?",), levels, lambda w: 0 if w["v"] < nb else 1 if w["v"] == nb else 2 if w["v"] < 2 * nb else 3)],
        ("Is {a} older than {b}?", "Are {a} and {b} related?", "Did {b} have more last year?"),
    )


BOUNDS = (
    ("exactly {n}", 0, 0), ("at least {n}", 0, 99), ("at most {n}", -99, 0), ("more than {n}", 1, 99), ("fewer than {n}", -99, -1), ("no more than {n}", -99, 0),
    ("no fewer than {n}", 0, 99), ("{n}", 0, 0), ("up to {n}", -99, 0), ("{n} or more", 0, 99),
)


@situation(
    "comparison", "work",
    "{bound_cap} {things} were delivered to {town} that day.",
    "The delivery to {town} consisted of {bound} {things}.",
    "{name} counted {bound} {things} in {town}.",
    "According to {name}, {bound} {things} reached {town}.",
    "Delivery note, {town}: {bound} {things}, checked by {name}.",
    "{name} is certain that {town} received {bound} {things}.",
    "All that is known of {town} is that {bound} {things} arrived.",
    "The depot in {town} got {bound} {things}, as {name} confirmed by phone.",
)
def bounded(d: Draw) -> Situation:
    things, town, name, n = d.choice(COUNTED), d.town(), d.name(), d.randrange(20, 60)
    k = d.randrange(5, 15)
    base = {"things": things, "town": town, "name": name, "lo": n - k, "hi": n + k, "n": n, "n1": n + 1}
    made = d.sample(BOUNDS, 5)
    states = worlds(base, [{"bound": t.format(n=n), "bound_cap": cap(t.format(n=n)), "low": n + l if l > -99 else 0, "high": n + h if h < 99 else 10**6} for t, l, h in made])
    neg = lambda x: None if x is None else not x
    return Situation(
        f"the {things} in {town}", states,
        [
            ask(lambda w: within(w["low"], w["high"], n), "Did {n} {things} or more arrive in {town}?", "There were {n} {things} at the least.", no=("Fewer than {n} {things} arrived.",)),
            ask(lambda w: neg(within(w["low"], w["high"], n + 1)), "Were there {n} {things} at the most?", no=("The number of {things} was above {n}.",)),
            ask(lambda w: within(w["low"], w["high"], n - k), "Did {lo} {things} or more come?", no=("There were fewer than {lo} {things}.",)),
            ask(lambda w: neg(within(w["low"], w["high"], n + k)), "Was the number of {things} smaller than {hi}?", no=("{hi} or more {things} arrived.",)),
            ask(lambda w: w["low"] == w["high"], "Does the text give the exact number of {things}?", no=("The exact number of {things} is left open.",)),
            ask(lambda w: w["low"] <= n + k <= w["high"], "Judging by the text alone, could there have been {hi} {things}?", no=("The text rules out that there were {hi} {things}.",)),
            ask(lambda w: w["low"] <= n - k <= w["high"], "Going by the text, is {lo} a possible number of {things}?", no=("By this text, {lo} cannot be the number of {things}.",)),
        ],
        unsaid=("Were the {things} paid for in advance?", "Is {town} near the coast?"),
    )


SCALES = (
    ("taller", "shorter", "tallest", "shortest"), ("older", "younger", "oldest", "youngest"), ("faster", "slower", "fastest", "slowest"),
    ("richer", "poorer", "richest", "poorest"), ("louder", "quieter", "loudest", "quietest"), ("stronger", "weaker", "strongest", "weakest"),
)


@situation(
    "comparison", "home",
    "{x} is {more} than {y}, and {y} is {more} than {z}.",
    "{y} is {less} than {x} but {more} than {z}.",
    "{z} is {less} than {y}; {x} is {more} than {y}.",
    "Of the three, {x} is the {most}; {z} is {less} than {y}.",
    "The {least} of the three is {z}, and {x} is {more} than {y}.",
    "{x} is {more} than {y}. {y}, in turn, is {more} than {z}.",
    "Everyone agrees that {y} is {less} than {x}, and that {z} is {less} than {y}.",
    "{z} is not as {base} as {y}, who is not as {base} as {x}.",
)
def ranking(d: Draw) -> Situation:
    p = d.names(3)
    more, less, most, least = d.choice(SCALES)
    plain = {"taller": "tall", "older": "old", "faster": "fast", "richer": "rich", "louder": "loud", "stronger": "strong"}[more]
    base = {"more": more, "less": less, "most": most, "least": least, "base": plain, "a": p[0], "b": p[1], "c": p[2]}
    orders = d.sample(((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)), 5)
    states = worlds(base, [{"x": p[o[0]], "y": p[o[1]], "z": p[o[2]], "o": o} for o in orders])
    at = lambda w, k: w["o"].index(k)
    return Situation(
        f"{p[0]}, {p[1]} and {p[2]}", states,
        [
            ask(lambda w: at(w, 0) < at(w, 1), "Is {a} {more} than {b}?", "{b} is {less} than {a}.", no=("Is {a} {less} than {b}?", "{b} is {more} than {a}.")),
            ask(lambda w: at(w, 0) < at(w, 2), "Is {a} {more} than {c}?", "{c} is not as {base} as {a}.", no=("{c} is {more} than {a}.", "Is {a} {less} than {c}?")),
            ask(lambda w: at(w, 2) == 0, "Is {c} the {most} of the three?", no=("Somebody among the three is {more} than {c}.",)),
            ask(lambda w: at(w, 1) == 2, "Is {b} the {least} of them?", no=("{b} is not the {least} of them.",)),
        ],
        [Choose(("Who is the {most}?", "Which of the three is the {most}?"), p, lambda w: w["x"]), Choose(("Who is the {least}?", "Which of the three is the {least}?"), p, lambda w: w["z"]),
         Choose(("Who is neither the {most} nor the {least}?",), p, lambda w: w["y"])],
        unsaid=("Do {a} and {b} live in the same town?", "Is {c} married?"),
    )


RULES = (
    ("{lim} or over", lambda v, m: v >= m), ("over {lim}", lambda v, m: v > m), ("under {lim}", lambda v, m: v < m), ("up to and including {lim}", lambda v, m: v <= m),
    ("at least {lim}", lambda v, m: v >= m), ("below {lim}", lambda v, m: v < m), ("more than {lim}", lambda v, m: v > m), ("no more than {lim}", lambda v, m: v <= m),
)


def _limit(d: Draw, base: dict, m: int, values: list[int]):
    """Worlds that vary either the value against one rule or the rule against one value at the bound."""
    if d.random() < 0.5:
        rule, test = d.choice(RULES)
        states = worlds(base, [{"rule": rule.format(lim=m), "v": v, "ok": test(v, m)} for v in values])
    else:
        value = d.choice((m, m, m - 1, m + 1))
        states = worlds(base, [{"rule": rule.format(lim=m), "v": value, "ok": test(value, m)} for rule, test in d.sample(RULES, 5)])
    d.shuffle(states)
    return states


@situation(
    "thresholds", "home",
    "{Ride} is for visitors who are {rule} years old. {name} is {v}.",
    "{name} is {v} years old and wants to try {ride}, which takes visitors aged {rule}.",
    "Rule at {ride}: age {rule}. {name}'s age: {v}.",
    "Only people aged {rule} get in to {ride}; {name} turned {v} last week.",
    "{name}, {v}, is standing in the queue for {ride}. Admission: age {rule}.",
    "To enter {ride} one has to be {rule} years of age, and {name} is {v}.",
    "The sign at {ride} says \"age {rule}\". {name} has just turned {v}.",
    "{name} ({v}) asked about {ride}. The answer was that it is for people aged {rule}.",
)
def age(d: Draw) -> Situation:
    name, m = d.name(), d.choice((6, 8, 10, 12, 14, 16, 18, 21, 60, 65))
    ride = d.choice(("the climbing wall", "the ghost train", "the film night", "the go-kart track", "the puppet theatre", "the ice rink", "the cave tour", "the swimming gala"))
    base = {"name": name, "ride": ride, "Ride": cap(ride), "m": m, "m2": m - 2}
    return Situation(
        f"{name} and {ride}", _limit(d, base, m, [m - 3, m - 1, m, m + 1, m + 4]),
        [
            ask(lambda w: w["ok"], "May {name} go to {ride}?", "{name} meets the age rule of {ride}.", "By the rule, is {name} let in?",
                no=("Is {name} turned away from {ride} by the rule?", "{name} does not meet the age rule of {ride}.")),
            ask(lambda w: w["v"] >= m, "Is {name} {m} or older?", no=("{name} is younger than {m}.",)),
            ask(lambda w: w["v"] > m, "Is {name} older than {m}?", no=("{name} is {m} at the most.",)),
            ask(lambda w: w["v"] >= m - 2, "Has {name} reached the age of {m2}?", no=("{name} has not reached the age of {m2}.",)),
        ],
        unsaid=("Is {name} afraid of the dark?", "Did {name} come with friends?", "Does {ride} cost anything?"),
    )


@situation(
    "thresholds", "tech",
    "An alert is sent when {metric} on {host} is {rule} {unit}; the last reading was {v}.",
    "Last reading of {metric} on {host}: {v} {unit}. Alert condition: {rule}.",
    "{host}: {metric} = {v} {unit} (alert if {rule}).",
    "The rule for {host} fires if {metric} is {rule} {unit}. The monitor just measured {v} {unit}.",
    "{metric_cap} on {host} stands at {v} {unit}, and the alarm goes off when it is {rule}.",
    "For {host} the alarm is set to go off whenever {metric} is {rule} {unit}. Reading at the time of the report: {v} {unit}.",
    "{host} reported {v} {unit} for {metric}; its alarm is triggered by values of {rule}.",
    "Check of {host}: {metric} {v} {unit}; the alarm rule says {rule} {unit}.",
)
def alarm(d: Draw) -> Situation:
    metric, unit, m = d.choice((("the temperature", "degrees", 70), ("the queue length", "jobs", 500), ("the response time", "ms", 250), ("the disk usage", "percent", 85),
                                ("the memory use", "percent", 90), ("the error count", "errors", 40), ("the pressure", "bar", 12), ("the humidity", "percent", 60)))
    m += d.randrange(-5, 6)
    host = f"{d.choice(('node', 'pump', 'sensor', 'rack', 'server', 'tank'))}-{d.randrange(10, 99)}"
    base = {"metric": metric, "metric_cap": cap(metric), "unit": unit, "host": host, "m": m}
    return Situation(
        host, _limit(d, base, m, [m - 4, m - 1, m, m + 1, m + 6]),
        [
            ask(lambda w: w["ok"], "Does the last reading of {host} set off the alarm?", "The alarm condition of {host} is met.", "Should an alert go out for {host}?",
                no=("The reading of {host} does not meet the alarm condition.", "Does {host} stay quiet with this reading?")),
            ask(lambda w: w["v"] >= m, "Is the reading {m} or higher?", no=("The reading lies below {m}.",)),
            ask(lambda w: w["v"] > m, "Is {metric} on {host} above {m} {unit}?", no=("{metric_cap} on {host} does not exceed {m} {unit}.",)),
        ],
        unsaid=("Was {host} replaced recently?", "Is anybody on call for {host}?"),
    )


@situation(
    "thresholds", "work",
    "{shop} delivers free of charge for orders of {rule} euros. {name}'s order comes to {v} euros.",
    "{name}'s basket at {shop} adds up to {v} euros; delivery is free if the order is {rule} euros.",
    "Order {code}, {shop}, customer {name}, {v} euros. Free delivery: {rule} euros.",
    "Free delivery at {shop} applies to orders of {rule} euros, and {name} spent {v}.",
    "{name} ordered for {v} euros at {shop}, where orders of {rule} euros are sent without a delivery fee.",
    "At {shop} nobody pays for delivery on orders of {rule} euros; every other order costs 4.90 extra. {name} has goods for {v} euros in the basket.",
    "What {name} chose at {shop} costs {v} euros. Orders of {rule} euros go out free of charge.",
    "{v} euros: that is {name}'s order {code} at {shop}, whose rule is free delivery for orders of {rule} euros.",
)
def delivery(d: Draw) -> Situation:
    name, shop, m, code = d.name(), d.company(), d.choice((25, 30, 40, 49, 50, 60, 75, 100)), d.code()
    base = {"name": name, "shop": shop, "m": m, "code": code}
    return Situation(
        f"{name}'s order at {shop}", _limit(d, base, m, [m - 9, m - 1, m, m + 1, m + 13]),
        [
            ask(lambda w: w["ok"], "Is delivery free for {name}?", "{name} pays no delivery fee.", "Does {name}'s order qualify for free delivery?",
                no=("{name} has to pay for delivery.", "Is a delivery fee due on {name}'s order?")),
            ask(lambda w: w["v"] < m, "Is {name}'s order worth less than {m} euros?", no=("{name} spent {m} euros or more.",)),
            ask(lambda w: w["v"] > m, "Did {name} spend more than {m} euros?", no=("{name}'s order does not exceed {m} euros.",)),
            ask(lambda w: True, "Can an order at {shop} be delivered free of charge?", no=("{shop} never delivers free of charge.",)),
        ],
        unsaid=("Has {name} ordered from {shop} before?", "Will the goods arrive this week?"),
    )
