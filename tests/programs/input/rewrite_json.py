"""Makes a large JSON document, parses it, rewrites it several ways, and prints digests of all of
it: dictionaries, lists, strings and numbers by the hundred thousand.
usage: rewrite_json.py RECORDS"""
import collections
import hashlib
import json
import pickle
import random
import sys
import threading


def make(records):
    chance = random.Random(1)
    return [
        {
            "id": i,
            "name": "".join(chance.choices("abcdefghij é€", k=chance.randrange(3, 60))),
            "values": [chance.random() for _ in range(chance.randrange(12))],
            "tags": {f"t{chance.randrange(500)}": chance.randrange(10**6) for _ in range(5)},
            "parent": chance.randrange(i + 1) or None,
        }
        for i in range(records)
    ]


def digest(name, text, lock=threading.Lock()):
    data = text if isinstance(text, bytes) else text.encode()
    with lock:
        print(name, len(data), hashlib.sha256(data).hexdigest())


def rewrite(text):
    """Turns records into columns and an index of tags, and back into text."""
    records = json.loads(text, object_pairs_hook=collections.OrderedDict)
    columns, index = collections.defaultdict(list), collections.defaultdict(set)
    for record in records:
        for key, value in record.items():
            columns[key].append(value)
        for tag in record["tags"]:
            index[tag].add(record["id"])
    index = {tag: sorted(ids) for tag, ids in sorted(index.items())}
    return json.dumps({"columns": columns, "index": index}, ensure_ascii=False, indent=1)


def main():
    text = json.dumps(make(int(sys.argv[1])))
    digest("document", text)
    rewritten = rewrite(text)
    digest("rewritten", rewritten)
    digest("again", json.dumps(json.loads(rewritten), sort_keys=True))
    digest("pickle", pickle.dumps(json.loads(text)))
    parts = [text[i : i + 40] for i in range(0, len(text), 40)]
    digest("parts", "".join(reversed(parts)))
    results = {}
    short = text[:1000].rsplit("}, {", 1)[0] + "}]"
    threads = [
        threading.Thread(target=lambda k=k: results.update({k: rewrite(short)})) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    digest("threads", "".join(results[k] for k in sorted(results)))


main()
