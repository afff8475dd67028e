"""Fields of records: JSON, labelled lines, tables and lists."""
import json

from .world import Choose, Draw, Rate, Situation, ask, band, situation

STATUS = ("open", "closed", "pending", "blocked", "draft")
PRIORITY = ("low", "medium", "high", "critical")


def _record(d: Draw) -> tuple[dict, list[dict]]:
    name, owner = d.name(), d.name()
    base = {"code": d.code(), "name": name, "owner": owner, "status": d.choice(STATUS), "priority": d.choice(PRIORITY), "amount": d.randrange(20, 900), "paid": d.random() < 0.5,
            "count": d.randrange(0, 11), "town": d.town(), "tags": d.sample(("gift", "express", "fragile", "bulk", "return", "vip"), 2)}
    key = d.choice(("status", "priority", "amount", "paid", "count"))
    pool = {"status": STATUS, "priority": PRIORITY, "amount": [d.randrange(20, 900) for _ in range(4)], "paid": (True, False, None), "count": d.sample(range(11), 4)}[key]
    states = []
    for value in dict.fromkeys([base[key], *pool]):
        record = {**base, key: value}
        shown = {k: record[k] for k in ("code", "name", "owner", "status", "priority", "amount", "paid", "count", "town", "tags")}
        pairs = [(k, "unknown" if v is None else "yes" if v is True else "no" if v is False else ", ".join(v) if isinstance(v, list) else v) for k, v in shown.items()]
        record |= {"json": json.dumps(shown), "pretty": json.dumps(shown, indent=2), "lines": "\n".join(f"{k.capitalize()}: {v}" for k, v in pairs), "flat": "; ".join(f"{k}={v}" for k, v in pairs),
                   "csv": ",".join(k for k, _ in pairs) + "\n" + ",".join(f'"{v}"' if "," in str(v) else str(v) for _, v in pairs), "row": "| " + " | ".join(k for k, _ in pairs) + " |\n|" + "---|" * len(pairs) + "\n| " + " | ".join(str(v) for _, v in pairs) + " |"}
        record |= {"xml": "<order>" + "".join(f"<{k}>{v}</{k}>" for k, v in pairs) + "</order>", "yaml": "\n".join(f"{k}: {v}" for k, v in pairs)}
        states.append(record)
    d.shuffle(states)
    return base, states


@situation(
    "records", "record",
    "{json}", "{pretty}", "{lines}", "{flat}", "{csv}", "{row}", "{xml}", "{yaml}",
    "Here is what the system returned for {code}:\n{json}", "Order export:\n{csv}", "The entry reads as follows.\n{lines}", "GET /orders/{code}\n200 OK\n{pretty}", "log level=info event=order_read {flat}",
    "{{\"request\": \"read\", \"result\": {json}}}",
)
def order(d: Draw) -> Situation:
    base, states = _record(d)
    m, c = d.choice((100, 250, 500, base["amount"])), d.choice((1, 3, 5))
    states = [{**w, "m": m, "c": c} for w in states]
    s, p = base["status"], base["priority"]
    states = [{**w, "s": s, "p": p} for w in states]
    return Situation(
        f"order {base['code']}", states,
        [
            ask(lambda w: w["status"] == s, "Is the status of {code} \"{s}\"?", no=("The status of {code} is something other than \"{s}\".",)),
            ask(lambda w: PRIORITY.index(w["priority"]) >= 2, "Is the priority high or critical?", no=("The priority of {code} is medium at most.",)),
            ask(lambda w: w["amount"] > m, "Is the amount greater than {m}?", no=("The amount is {m} or less.",)),
            ask(lambda w: w["paid"], "Has order {code} been paid?", no=("Order {code} is unpaid.",)),
            ask(lambda w: w["count"] >= c, "Is the count at least {c}?", no=("The count is below {c}.",)),
            ask(lambda w: w["status"] != "closed" and PRIORITY.index(w["priority"]) >= 2, "Is this an order that is not closed and has a priority of high or above?", no=("The order is closed, or its priority is below high.",)),
            ask(lambda w: True, "Does {owner} own the order of {name}?", "The record belongs to {name}.", no=("{name} is the owner of the order made by {owner}.",)),
        ],
        [Choose(("What is the status?", "Which status does {code} have?"), list(STATUS), lambda w: w["status"]), Choose(("Which priority is set?",), list(PRIORITY), lambda w: w["priority"]),
         Choose(("Who is the owner of {code}?",), [base["owner"], base["name"], "nobody"], lambda w: base["owner"])],
        [Rate(("What is the count of {code}?", "Count, from 0 to 10"), [str(i) for i in range(11)], lambda w: w["count"]), Rate(("How high is the priority?",), list(PRIORITY), lambda w: PRIORITY.index(w["priority"])), Rate(("How large is the amount?",), ["below 100", "100 to 299", "300 to 599", "600 or more"], lambda w: band(w["amount"], (100, 300, 600)))],
        ("Was {code} ordered by phone?", "Has {name} ordered before?", "Will {code} arrive this week?"),
    )


@situation(
    "records", "record",
    "{md}", "{lines}", "{csv}", "{json}", "{list}", "Results of the day:\n{md}", "Table of entries, points after three rounds.\n{csv}", "{{\"event\": \"spring cup\", \"entries\": {json}}}",
    "From the programme:\n{list}", "score sheet\n{lines}\nend of sheet",
)
def table(d: Draw) -> Situation:
    people = d.names(d.randrange(3, 7))
    towns = [d.town() for _ in people]
    points = d.distinct(10, 99, len(people))
    a, b = people[0], people[1]
    states = []
    shown = list(range(len(people)))
    d.shuffle(shown)
    for value in [points[0], *d.distinct(10, 99, 4)]:
        if value in points[1:]:
            continue
        mine = [value, *points[1:]]
        rows = [(people[i], towns[i], mine[i]) for i in shown]
        states.append({
            "a": a, "b": b, "mine": mine, "town": towns[1], "md": "| name | town | points |\n|---|---|---|\n" + "\n".join(f"| {n} | {t} | {p} |" for n, t, p in rows),
            "lines": "\n".join(f"{n} ({t}): {p} points" for n, t, p in rows), "csv": "name,town,points\n" + "\n".join(f"{n},{t},{p}" for n, t, p in rows),
            "json": json.dumps([{"name": n, "town": t, "points": p} for n, t, p in rows]), "list": "\n".join(f"- {n} from {t}, {p}" for n, t, p in rows),
        })
    winner = lambda w: people[w["mine"].index(max(w["mine"]))]
    last = lambda w: people[w["mine"].index(min(w["mine"]))]
    return Situation(
        f"the points of {a}", states,
        [
            ask(lambda w: w["mine"][0] > w["mine"][1], "Does {a} have more points than {b}?", no=("{b} is ahead of {a}.",)),
            ask(lambda w: winner(w) == a, "Does {a} have the most points?", no=("Somebody has more points than {a}.",)),
            ask(lambda w: last(w) == a, "Is {a} in last place?", no=("{a} is not in last place.",)),
            ask(lambda w: w["mine"][0] >= 50, "Does {a} have 50 points or more?", no=("{a} has fewer than 50 points.",)),
            ask(lambda w: True, "Is {b} from {town}?", no=("{b} comes from a place other than {town}.",)),
        ],
        [Choose(("Who has the most points?", "Who comes first?"), people, winner), Choose(("Who has the fewest points?",), people, last)],
        [Rate(("How many of the others have more points than {a}?",), [str(i) for i in range(len(people))], lambda w: sum(p > w["mine"][0] for p in w["mine"]))],
        ("Is {a} older than {b}?", "Did {b} take part last year?"),
    )
