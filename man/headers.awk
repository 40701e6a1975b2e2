# Reads public headers, for man/page.awk: awk -f man/headers.awk -f man/page.awk ... include/shmtrain/*.h
#
# What it relies on: a header begins with a comment that says what it is about. Behind it, each declaration has a comment before
# it, or behind it in the same line; declarations without a blank line between them share the comment before. A comment that
# begins with ---- words ---- opens a section, and one with a blank line behind it is a paragraph of its own. Nothing is left out
# silently: what cannot be read ends the program with a sentence.
#
# What it leaves, for items i = 1 .. n_items, header by header:
#   item_page[i]  "session", of session.h
#   item_kind[i]  about, section, text, constant, enum, struct, opaque, callback, function
#   item_name[i]  "shmtrain_next"; of a section its words; of an enum ""
#   item_code[i]  the declaration without comments, blanks made one, without ';' and body; of a constant its value
#   item_body[i]  struct, enum: what stands between the braces, comments included
#   item_text[i]  the comment, lines with "\n" between; "" where it has none, or item_shares[i]: the one of the next item
# and n_pages, page[1 .. n_pages].

FNR == 1 {
    n = split(FILENAME, part, "/")
    page[++n_pages] = substr(part[n], 1, length(part[n]) - 2)
}
{ header[page[n_pages]] = header[page[n_pages]] $0 "\n" }

function fail(words) {
    print "headers.awk: " words | "cat 1>&2"
    failed = 1
    exit 1
}

function add(kind, name, code, text) {
    n_items++
    item_page[n_items] = now
    item_kind[n_items] = kind
    item_name[n_items] = name
    item_code[n_items] = code
    item_text[n_items] = text
}

# "/* words\n * more */" as "words\nmore". What is indented behind the star stays so.
function words_of(comment,    i, n, line, out) {
    n = split(substr(comment, 3, length(comment) - 4), line, "\n")
    for (i = 1; i <= n; i++) {
        if (i > 1 && line[i] ~ /^[ \t]*\*/)
            sub(/^[ \t]*\* ?/, "", line[i])
        else
            sub(/^[ \t]+/, "", line[i])
        sub(/[ \t]+$/, "", line[i])
        out = out (i > 1 ? "\n" : "") line[i]
    }
    sub(/\n+$/, "", out)
    return out
}

# Without comments.
function code_of(s,    at, end, out) {
    while ((at = index(s, "/*")) > 0) {
        end = index(s, "*/")
        if (end == 0) fail(now ".h: a comment without an end")
        out = out substr(s, 1, at - 1) " "
        s = substr(s, end + 2)
    }
    return out s
}

function tidy(s) {
    gsub(/[ \t\n]+/, " ", s)
    sub(/^ /, "", s)
    sub(/ $/, "", s)
    return s
}

function count(s, what) { return gsub(what, "", s) }

# Whether this is a whole declaration: no comment, parenthesis or brace is open, and it ends.
function is_whole(s,    code) {
    if (count(s, "/[*]") != count(s, "[*]/")) return 0
    code = code_of(s)
    if (count(code, "[({]") != count(code, "[)}]")) return 0
    return code ~ /[;}][ \t\n]*$/
}

# The comment behind the declaration's end; "" where there is none.
function comment_behind(s,    at) {
    if (s !~ /[*]\/[ \t\n]*$/) return ""
    for (at = length(s); at > 0 && substr(s, at, 2) != "/*"; at--) continue
    if (code_of(substr(s, 1, at - 1)) !~ /;[ \t\n]*$/) return ""
    s = substr(s, at)
    sub(/[ \t\n]+$/, "", s)
    return words_of(s)
}

function name_in(code) {
    if (!match(code, /shmtrain_[a-z0-9_]+ *\(/)) fail(now ".h: what is declared by \"" code "\"?")
    code = substr(code, RSTART, RLENGTH - 1)
    sub(/ +$/, "", code)
    return code
}

function add_declaration(s,    code, name, text, shared) {
    code = tidy(code_of(s))
    text = comment_behind(s)
    shared = text == "" && note != ""
    if (shared && note_item == n_items && note_item > 0) {
        item_text[n_items] = "" # it goes to the last one that shares it
        item_shares[n_items] = 1
    }
    if (text == "") text = note
    if (code ~ /^(struct|enum) ?[a-z0-9_]* ?[{]/) {
        name = code
        sub(/ ?[{].*/, "", name)
        add(code ~ /^enum/ ? "enum" : "struct", name == "enum" ? "" : substr(name, index(name, " ") + 1), name, text)
        match(s, /[{].*[}]/)
        item_body[n_items] = substr(s, RSTART + 1, RLENGTH - 2)
    } else if (code ~ /^(typedef )?struct [a-z0-9_]+( [a-z0-9_]+)?;$/) {
        sub(/;$/, "", code)
        name = code
        sub(/.* /, "", name)
        add("opaque", name, code, text)
    } else {
        sub(/ ?(;|[{].*)$/, "", code)
        sub(/^SHMTRAIN_API /, "", code)
        sub(/^static inline /, "", code)
        sub(/ ?__attribute__ ?[(][(].*[)][)]$/, "", code)
        add(code ~ /^typedef / ? "callback" : "function", name_in(code), code, text)
    }
    if (shared) note_item = n_items
}

function add_comment(s,    text, at) {
    text = words_of(s)
    if (!has_about) {
        add("about", "", "", text)
        has_about = 1
    } else if (match(text, /^---- .* ----/)) {
        add("section", substr(text, 6, RLENGTH - 10), "", substr(text, RLENGTH + 1))
        sub(/^\n+/, "", item_text[n_items])
    } else {
        note = text
        note_item = 0
    }
}

function add_constant(line,    name, text) {
    text = note_item == 0 ? note : ""
    if (match(line, /\/[*].*[*]\//)) text = words_of(substr(line, RSTART, RLENGTH))
    line = tidy(code_of(line))
    sub(/^#define /, "", line)
    name = line
    if (line ~ /^[A-Z0-9_]+[(]/) sub(/[)].*/, ")", name) # a macro with arguments
    else sub(/ .*/, "", name)
    if (name == line || name == "SHMTRAIN_API") return # the guard
    add("constant", name, substr(line, length(name) + 2), text)
    if (text != "" && text == note) note_item = n_items
}

# A comment with a blank line behind it belongs to no declaration.
function end_note() {
    if (note != "" && note_item == 0) add("text", "", "", note)
    note = ""
    note_item = 0
}

function parse(s,    at, chunk) {
    has_about = 0
    note = ""
    while (s != "") {
        at = index(s, "\n")
        chunk = substr(s, 1, at)
        if (chunk ~ /^[ \t]*\n$/) {
            end_note()
        } else if (chunk ~ /^#ifdef __cplusplus/) {
            at = index(s, "\n#endif\n") + 7
        } else if (chunk ~ /^#/) {
            if (chunk ~ /^#define/) add_constant(substr(chunk, 1, at - 1))
        } else if (chunk ~ /^\/[*]/) {
            at = index(s, "*/") + 1
            add_comment(substr(s, 1, at))
            if (substr(s, at + 1, 1) == "\n") at++
        } else {
            while (!is_whole(chunk)) {
                if (at >= length(s)) fail(now ".h: a declaration without an end: " tidy(chunk))
                at += index(substr(s, at + 1), "\n")
                chunk = substr(s, 1, at)
            }
            add_declaration(chunk)
        }
        s = substr(s, at + 1)
    }
    end_note()
}

function parse_all(    i, k, kept) {
    for (i = 2; i <= n_pages; i++) { # into the alphabet's order
        kept = page[i]
        for (k = i - 1; k >= 1 && page[k] > kept; k--) page[k + 1] = page[k]
        page[k + 1] = kept
    }
    for (i = 1; i <= n_pages; i++) {
        now = page[i]
        parse(header[now])
    }
}
