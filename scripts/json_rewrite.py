"""What ./dev run measures without a command: CPython parsing, rewriting and writing JSON.

Usage: json_rewrite.py [RECORDS]     default 20000, about 16 MB of text

The document is generated, the same one every time, and looks like the export of a shop: nested
objects, lists of varying length, short and long strings. It is parsed into some millions of
objects, every part of it is rebuilt in another shape, and the result is written and read back.
Prints a few figures of the content, which do not depend on the allocator.
"""

import hashlib
import json
import random
import sys

WORDS = (
    "amber basil cedar delta ember fjord grove haven inlet jade kelp larch maple north ocean "
    "pearl quartz river slate thorn umber vale willow xenon yarrow zephyr"
).split()


def make_record(number, rng):
    """One order, with one to eight lines and now and then a long remark."""
    lines = [
        {
            "sku": f"{rng.choice(WORDS)}-{rng.randrange(10**6):06d}",
            "title": " ".join(rng.choices(WORDS, k=rng.randrange(2, 7))),
            "quantity": rng.randrange(1, 10),
            "price": rng.randrange(100, 100_000) / 100,
            "tags": rng.choices(WORDS, k=rng.randrange(4)),
        }
        for _ in range(rng.randrange(1, 9))
    ]
    return {
        "id": number,
        "customer": {
            "name": f"{rng.choice(WORDS).title()} {rng.choice(WORDS).title()}",
            "email": f"{rng.choice(WORDS)}.{number}@example.org",
            "address": {"street": rng.choice(WORDS), "number": rng.randrange(200), "unit": None},
        },
        "lines": lines,
        "paid": rng.random() < 0.8,
        "remark": " ".join(rng.choices(WORDS, k=rng.randrange(40, 400))) if number % 16 == 0 else "",
    }


def make_document(records):
    rng = random.Random(20240601)
    return json.dumps({"orders": [make_record(number, rng) for number in range(records)]})


def rewrite(value):
    """The same value in another shape: new keys, new strings, sorted members, no empty ones."""
    if isinstance(value, dict):
        members = ((key.upper(), rewrite(member)) for key, member in value.items())
        return {key: member for key, member in sorted(members) if member not in (None, "", [])}
    if isinstance(value, list):
        return [rewrite(item) for item in value]
    if isinstance(value, str):
        return value.replace("a", "å")
    return value


def by_product(orders):
    """What was sold, grouped by the first word of the product: lists that grow together."""
    groups = {}
    for order in orders:
        for line in order["LINES"]:
            sold = groups.setdefault(line["SKU"].partition("-")[0], [])
            sold.append((order["ID"], line["PRICE"]))
    return {
        word: {"count": len(sold), "total": round(sum(price for _, price in sold), 2)}
        for word, sold in groups.items()
    }


def main():
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    text = make_document(records)
    orders = rewrite(json.loads(text))["ORDERS"]
    result = {"orders": orders, "products": by_product(orders)}
    written = json.dumps(result, indent=1, ensure_ascii=False)
    again = json.loads(written)
    if again != result:
        sys.exit("what was written does not read back the same")
    digest = hashlib.sha256(written.encode()).hexdigest()
    print(f"{records} orders, {len(text):,} characters in, {len(written):,} out, sha256 {digest[:16]}")


if __name__ == "__main__":
    main()
