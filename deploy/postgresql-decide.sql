-- Decisions from inside PostgreSQL: functions that ask an Umpire server about a text. See docs/tables.md.
-- Needs PL/Python (Debian: postgresql-plpython3-15), and is run once in a database by a superuser.
CREATE EXTENSION IF NOT EXISTS plpython3u;
CREATE SCHEMA umpire;

-- What can stand in a header. A domain, for its error does not quote the value, as a CHECK of the table would.
CREATE DOMAIN umpire.api_key AS text CHECK (VALUE ~ '^[!-~]+$');

-- Where the server is, the API key, and the run: another one asks anew what was answered before. The functions read it for
-- their callers, who cannot.
CREATE TABLE umpire.settings (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  url text NOT NULL,
  key umpire.api_key NOT NULL,
  run text NOT NULL DEFAULT ''
);

-- The answers to a list of questions, as POST /v1/decisions takes and gives them. The model may be a question set: then
-- umpire.decide(body, '[]', 'set:refunds').
-- In one run the same questions of the same text are asked under the same Idempotency-Key: for 24 hours a query that is
-- repeated, or that failed halfway, is answered from what was answered before and charged once.
CREATE FUNCTION umpire.decide(input text, questions jsonb, model text DEFAULT 'umpire-decide') RETURNS jsonb
LANGUAGE plpython3u VOLATILE STRICT COST 100000 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
import hashlib, http.client, json, re, urllib.parse

# There is nothing to ask about.
if input.strip() == "":
    return None

# The pauses between them are 142 seconds together: longer than a first attempt runs on at the server, which answers its
# repetitions with 409 until it ends.
attempts_max = 20
# Of connections that cannot be opened, over 3 seconds where they are refused, to an address that has not answered in this
# session: it is wrong, or nothing runs there. One that has answered is away for a while.
unreachable_max = 5
pause_s_max = 10
retry_after_s_max = 60
connect_timeout_s = 5
timeout_s = 60
# Stands for the status of an attempt without a connection.
unreachable = 0
passing = (unreachable, 409, 429, 502, 503, 504)

settings = plpy.execute("SELECT url, key, run FROM umpire.settings")
if len(settings) == 0:
    plpy.error("Cannot ask Umpire: say where it is: INSERT INTO umpire.settings (url, key) VALUES (...)")
url = settings[0]["url"].rstrip("/")
body = json.dumps({"model": model, "input": input, "questions": json.loads(questions)}, sort_keys=True)
headers = {
    "authorization": "Bearer " + settings[0]["key"].strip(),
    "content-type": "application/json",
    "idempotency-key": "sql-" + hashlib.sha256(json.dumps([settings[0]["run"], body]).encode()).hexdigest(),
}

def connect():
    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    try:
        place = urllib.parse.urlsplit(url)
        if place.scheme not in kinds or not place.hostname or "@" in place.netloc:
            return None
        return kinds[place.scheme](place.hostname, place.port, timeout=connect_timeout_s), place.path
    except (ValueError, http.client.InvalidURL):
        return None

# One for each session and server; kept open.
if SD.get("url") != url:
    connected = connect()
    if connected is None:
        plpy.error("Cannot ask Umpire: the url in umpire.settings must begin with http:// or https:// and name a host, and no user")
    SD["connection"], SD["path"] = connected
    SD["url"] = url
connection = SD["connection"]

def ask():
    is_open = False
    try:
        if connection.sock is None:
            connection.connect()
            connection.sock.settimeout(timeout_s)
        is_open = True
        connection.request("POST", SD["path"] + "/v1/decisions", body.encode(), headers)
        response = connection.getresponse()
        SD["answered"] = url
        return response.status, response.getheader("retry-after"), response.read()
    except http.client.InvalidURL:
        return None, None, b""
    except (OSError, http.client.HTTPException) as failure:
        # The server closed it, or is away; the next request opens another.
        connection.close()
        return 503 if is_open else unreachable, None, json.dumps({"error": {"message": str(failure)}}).encode()
    except ValueError:
        # Its message quotes the header, with the key.
        return None, None, b""

statuses = []
for attempt in range(1, attempts_max + 1):
    status, retry_after, answer = ask()
    statuses.append(status)
    if status not in passing or attempt == attempts_max:
        break
    if statuses.count(unreachable) == unreachable_max and SD.get("answered") != url:
        break
    # A sleep of the database's own, which a cancelled query ends.
    pause = min(0.1 * 2 ** attempt, pause_s_max)
    if re.fullmatch("[0-9]{1,9}", retry_after or ""):
        pause = max(pause, min(int(retry_after), retry_after_s_max))
    plpy.execute("SELECT pg_sleep(%s)" % pause)
if status is None:
    plpy.error("Cannot ask Umpire: the url or the key in umpire.settings cannot be sent")
try:
    found = json.loads(answer)
except ValueError:
    found = {}
if not isinstance(found, dict):
    found = {}
if status == 200 and "answers" in found:
    return json.dumps(found["answers"])
error = found.get("error")
reason = error.get("message", "no reason") if isinstance(error, dict) else "no reason"
if status == unreachable:
    plpy.error("Cannot reach Umpire in %s attempts: %s" % (attempt, reason))
plpy.error("Umpire answered %s: %s" % (status, reason))
$$;

-- How probable it is that the answer is yes.
CREATE FUNCTION umpire.yes_no(input text, question text, model text DEFAULT 'umpire-decide') RETURNS float8
LANGUAGE sql VOLATILE STRICT COST 100000 AS $$
  SELECT (umpire.decide(
    input, jsonb_build_array(jsonb_build_object('type', 'predicate', 'instructions', question)), model
  ) -> 0 ->> 'probability')::float8
$$;

-- Which of the options it is.
CREATE FUNCTION umpire.choice(input text, question text, options text[], model text DEFAULT 'umpire-decide') RETURNS text
LANGUAGE sql VOLATILE STRICT COST 100000 AS $$
  SELECT umpire.decide(input, jsonb_build_array(jsonb_build_object('type', 'choice', 'instructions', question, 'choices',
    (SELECT jsonb_agg(jsonb_build_object('value', one)) FROM unnest(options) AS one)
  )), model) -> 0 ->> 'choice'
$$;

-- Whoever may ask spends money: GRANT USAGE ON SCHEMA umpire, EXECUTE ON ALL FUNCTIONS IN SCHEMA umpire.
REVOKE ALL ON SCHEMA umpire FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA umpire FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA umpire FROM PUBLIC;
