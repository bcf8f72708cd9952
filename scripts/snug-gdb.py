"""gdb on programs that run on snug: what block an address belongs to, in a process or a core dump.

    (gdb) source scripts/snug-gdb.py
    (gdb) snug-block ADDRESS

Needs snug's debug information (libsnug.so is built with it) and reads memory only: nothing is
called in the program, so it works on core dumps too.
"""

import gdb

PAGE_SHIFT = 12
CHUNK_BITS, NODE_BITS = 26, 35  # of the page map: what a chunk of entries and a node of chunks are for
GRID_BYTES = 64 * 1024
CELL_UNIT, CELL_HEADER = 16, 8
DIRTY, CLEAN, RECENT, FILLING, SLAB, CELLS, LARGE, HUGE = range(8)
CLASS_SHIFT = 56  # in an entry of the page map, above an address
CELL_LIVE = 225  # or below
CELL_STATES = {0xE9: "free, in the magazine of a thread", 0xF6: "free"}


def number(value):
    return int(value) & 0xFFFFFFFFFFFFFFFF


def read_word(address):
    return int.from_bytes(gdb.selected_inferior().read_memory(address, 8).tobytes(), "little")


def entry_of(address):
    """What the page map has for the page: 0, a span, or an odd word for memory that was freed."""
    if address >> 48:
        return 0
    node = gdb.parse_and_eval("page_map_nodes")[address >> NODE_BITS]
    chunk = 0 if number(node) == 0 else node["chunks"][address >> CHUNK_BITS & (1 << NODE_BITS - CHUNK_BITS) - 1]
    entry = 0 if number(chunk) == 0 else number(chunk[address >> PAGE_SHIFT & (1 << CHUNK_BITS - PAGE_SHIFT) - 1])
    return entry & ((1 << CLASS_SHIFT) - 1)


def each(head, kind):
    """The structures in a list, by their member `link`; none where there is no heap yet."""
    pointer = gdb.lookup_type("struct " + kind).pointer()
    (link,) = (field for field in pointer.target().fields() if field.name == "link")
    node = head["next"]
    while number(node) not in (0, number(head.address)):
        yield gdb.Value(number(node) - link.bitpos // 8).cast(pointer)
        node = node["next"]


def chain(span):
    """A span and all that follow it to its right."""
    while number(span) != 0:
        yield span
        span = span["right"]


def within(range, address):
    return 0 <= address - number(range["start"]) < number(range["pages"]) << PAGE_SHIFT


def span_around(address):
    """The span of malloc's heap that an address is in, found by walking; 0 if none is."""
    page_heap = gdb.parse_and_eval("heap_default.page_heap")
    for span in chain(page_heap["huge"]):
        if within(span, address):
            return number(span)
    for segment in [*each(page_heap["segments"], "segment"), *each(page_heap["cache"]["list"], "segment")]:
        if within(segment, address):
            return next((number(span) for span in chain(segment["first"]) if within(span, address)), 0)
    return 0


def describe_slab(span, address):
    slab = span.cast(gdb.lookup_type("struct slab").pointer())
    size = number(span["class"]) * CELL_UNIT
    base = number(span["start"]) & ~(GRID_BYTES - 1)
    index = (address - base) // size - number(slab["first"])
    if not 0 <= index < number(slab["capacity"]):
        return "in the unused end of a slab of objects of %d bytes" % size
    start = base + (number(slab["first"]) + index) * size
    key = (number(gdb.parse_and_eval("page_map.key")) + start) & 0xFFFFFFFFFFFFFFFF
    if index >= number(slab["fresh"]):
        state = "never handed out"
    elif number(slab["free_bits"][index // 64]) >> (index % 64) & 1:
        state = "free, in its slab"
    elif read_word(start) == key:
        state = "free, in a magazine or a depot"
    else:
        state = "in use"
    return "object of %d bytes at %#x, %s" % (size, start, state)


def describe_cell(span, address):
    cell = number(span["start"]) + CELL_HEADER
    end = number(span["start"]) + (number(span["pages"]) << PAGE_SHIFT) - CELL_HEADER
    while cell < end:
        header = read_word(cell)
        units, state = header & 0xFFFF, header >> 16 & 0xFF
        if units < 2:
            return "in medium blocks whose headers are damaged at %#x" % cell
        if address < cell + units * CELL_UNIT:
            start, size = cell + CELL_HEADER, units * CELL_UNIT - CELL_HEADER
            text = "in use" if state <= CELL_LIVE else CELL_STATES.get(state, "with a damaged header")
            return "medium block of %d bytes at %#x, %s" % (size, start, text)
        cell += units * CELL_UNIT
    return "in the unused end of medium blocks"


def describe(address):
    entry = entry_of(address)
    if entry == 0 or entry & 1:
        entry = span_around(address) or entry
    if entry == 0:
        return "not in a heap of snug"
    if entry & 1:
        return "in free pages" + (", where a block of %d bytes was" % (entry >> 1) if entry >> 1 else "")
    span = gdb.Value(entry).cast(gdb.lookup_type("struct span").pointer())
    kind, start = number(span["kind"]), number(span["start"])
    size = number(span["pages"]) << PAGE_SHIFT
    if kind == SLAB:
        return describe_slab(span, address)
    if kind == CELLS:
        return describe_cell(span, address)
    if kind in (LARGE, HUGE):
        name = "large" if kind == LARGE else "huge"
        return "%s block of %d bytes at %#x, in use, %d asked for" % (
            name, size, start, number(span["requested"]))  # fmt: skip
    former = number(span["former_bytes"]) if address - start < 1 << PAGE_SHIFT else 0
    if kind == RECENT:
        former = size
    was = ", where a block of %d bytes was" % former if former else ""
    return "in free pages, %d bytes from %#x on%s" % (size, start, was)


class SnugBlock(gdb.Command):
    """snug-block ADDRESS: the block of snug's heap that an address belongs to."""

    def __init__(self):
        super().__init__("snug-block", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("snug-block needs an address")
        address = number(gdb.parse_and_eval(argument))
        print("%#x: %s" % (address, describe(address)))


SnugBlock()
