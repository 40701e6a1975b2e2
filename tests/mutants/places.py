"""Where an operator can be changed in a C source, and to what.

The sources are laid out by clang-format, which this relies on: a binary operator has a space on both sides, a statement ends with
its line. Comments, strings, preprocessor lines and static assertions are never touched.
"""
import hashlib
import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<number>\.?[0-9](?:[eEpP][+-]|[0-9a-zA-Z_.])*)|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.S | re.X,
)

RELATION = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
LOGIC = {"&&": ("||",), "||": ("&&",)}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",), "&": ("|",), "|": ("&",), "^": ("|",),
              "<<": (">>",), ">>": ("<<",)}
ASSIGNMENT = {"+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "/=": ("*=",), "%=": ("*=",), "&=": ("|=",), "|=": ("&=",),
              "<<=": (">>=",), ">>=": ("<<=",), "++": ("--",), "--": ("++",)}
BINARY = {**RELATION, **LOGIC, **ARITHMETIC}

# What stands in the parentheses behind these is a hint to the compiler or the size of something.
NO_CODE = {"_Static_assert", "static_assert", "_Alignas", "__attribute__", "__builtin_prefetch", "__builtin_expect", "SHMT_POINT",
           "SHMT_GROWS"}
TYPE = re.compile(r"\s*(static|const|struct|enum|union|unsigned|char|bool|int|float|double|void|u?int\d+_t|size_t|_Atomic|_Thread_local)\b")
STATEMENT = re.compile(r"(?:\(void\))?[A-Za-z_*(][^;{}]*;$")
NO_STATEMENT = re.compile(r"(return|break|continue|goto|else|case|default|typedef|extern|do|while|for|if|switch|_Static_assert)\b")
LABEL = re.compile(r"\w+:")


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int  # from 1
    column: int  # from 1
    before: str  # "" where something is only added
    after: str
    old_line: str
    new_line: str

    @property
    def change(self):
        return f"{self.before} -> {self.after}"

    @property
    def id(self):
        return f"{self.file}:{self.line}:{self.column}:{self.change}".replace(" ", "_")


def tokens(source):
    """(kind, text, offset) of what is code, without comments and preprocessor lines, on which kind "preprocessor" is left."""
    at, fresh_line = 0, True
    while at < len(source):
        if fresh_line and (found := re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.S).match(source, at)):
            at = found.end()
            fresh_line = False
            continue
        found = TOKEN.match(source, at)
        if found.lastgroup == "blank":
            fresh_line |= "\n" in found.group()
        else:
            fresh_line = False
            yield found.lastgroup, found.group(), at
        at = found.end()


def closing(items, at):
    """The index of the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(items)):
        depth += {"(": 1, ")": -1}.get(items[i][1], 0)
        if depth == 0:
            return i
    return len(items) - 1


def one_more(number):
    """The literal plus one, and minus one where that is not negative; None: it is no plain integer."""
    found = re.fullmatch(r"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)", number)
    if not found or len(found[1]) > 1 and re.match("0[0-7]", found[1]):
        return ()
    n, hexadecimal = int(found[1], 0), found[1][1:2] in "xX" and len(found[1]) > 1
    written = (lambda k: hex(k) if hexadecimal else str(k))
    return tuple(written(k) + found[2] for k in ([n + 1, n - 1] if n > 0 else [n + 1]))


def changes(source):
    """(offset, what is there, what may be there instead) for each place of a source."""
    items = list(tokens(source))
    skipped, bracket, declaration = -1, 0, False
    for i, (kind, text, at) in enumerate(items):
        last = items[i - 1] if i else ("sign", ";", 0)
        following = items[i + 1] if i + 1 < len(items) else ("sign", ";", 0)
        if i <= skipped:
            continue
        if kind == "word" and text in NO_CODE and following[1] == "(":
            skipped = closing(items, i + 1)
            continue
        if last[1] in ("{", "}", ";"):
            declaration = bool(TYPE.match(source[at:]))
        bracket += {"[": 1, "]": -1}.get(text, 0) if kind == "sign" else 0
        if kind == "number":
            if bracket and declaration:
                continue  # the size of an array
            yield at, text, one_more(text)
        elif kind == "word":
            if text in ("if", "while") and following[1] == "(":
                end = items[closing(items, i + 1)][2]
                inner = source[following[2] + 1 : end]
                if "\n" not in inner and inner not in ("0", "1"):
                    yield following[2] + 1, inner, (f"!({inner})",)
        elif kind == "sign":
            spaced = source[at - 1 : at] == " " and source[at + len(text) : at + len(text) + 1] in (" ", "\n")
            if text in BINARY and spaced and (last[0] in ("word", "number", "text") or last[1] in (")", "]")):
                yield at, text, BINARY[text]
            elif text in ASSIGNMENT:
                yield at, text, ASSIGNMENT[text]
            elif text == "!" and following[1] != "(":
                yield at, text, ("",)
    yield from dropped(source, items)


def dropped(source, items):
    """Statements of one line each: calls and assignments."""
    start_of = {}
    for i, (_, _, at) in enumerate(items):
        before = items[i - 1][1] if i else ";"
        if before in ("{", "}", ";", ")"):
            start_of[at] = i
    depth_of, depth = {}, 0
    for _, text, at in items:
        depth += {"{": 1, "}": -1}.get(text, 0)
        depth_of[at] = depth
    for at in start_of:
        line_start = source.rfind("\n", 0, at) + 1
        line_end = source.find("\n", at)
        code = source[at:line_end].split(" /*")[0].rstrip()
        if source[line_start:at].strip() or depth_of.get(at, 0) == 0:
            continue  # not the beginning of a line, or outside of functions
        if not STATEMENT.match(code) or NO_STATEMENT.match(code) or TYPE.match(code) or LABEL.match(code):
            continue
        if code.startswith("(void)") and "(" not in code[6:] or "SHMT_POINT" in code or "SHMT_GROWS" in code:
            continue
        yield at, code, ("(void)0;",)


def mutants(file, source):
    """All of a file, in its order; several for a place that can become several things."""
    lines = source.split("\n")
    for at, before, afters in changes(source):
        line = source.count("\n", 0, at)
        column = at - (source.rfind("\n", 0, at) + 1)
        for after in afters:
            old = lines[line]
            new = old[:column] + after + old[column + len(before) :]
            if new != old:
                yield Mutant(file, line + 1, column + 1, before, after, old, new)


def choose(found, seed):
    """One mutant for each place, in an order that the seed decides. It depends on nothing else but the text of the line, so that
    most places stay when the sources change."""
    seen, ranked = {}, []
    of_place = {}
    for m in found:
        of_place.setdefault((m.file, m.line, m.column, len(m.before) > 3 and m.before), []).append(m)
    for place in of_place.values():
        m = place[0]
        text = f"{seed} {m.file} {m.column - len(m.old_line) + len(m.old_line.lstrip())} {m.before} {m.old_line.strip()}"
        nth = seen[text] = seen.get(text, 0) + 1
        key = hashlib.sha256(f"{text} {nth}".encode()).digest()
        ranked.append((key, place[key[0] % len(place)]))
    return [m for _, m in sorted(ranked, key=lambda pair: pair[0])]
