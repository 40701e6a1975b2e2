# Writes manual pages of section 3 from what man/headers.awk has read:
#
#   awk -f man/headers.awk -f man/page.awk -v want=session -v date="May 1, 2026" include/shmtrain/*.h    the page of session.h
#   awk ... -v want=shmtrain -v example=examples/line.c ...                                              the page about all of them
#   awk ... -v want=links ...                  "NAME PAGE" for each function, callback and struct: the page that it is found on
#
# Called by man/man.am at build time. Any awk of POSIX will do.

BEGIN {
    SLANTED = "\001"
    UPRIGHT = "\002"
}

END {
    if (failed) exit 1
    parse_all()
    index_names()
    if (want == "links")
        put_links()
    else if (want == "shmtrain")
        put_overview()
    else
        put_page()
}

# ---- names ----

# Pages are called like their headers, and so is a function here and there: its name leads to the page.
function page_name(p) { return p == "shmtrain" ? p : "shmtrain_" p }

function index_names(    i, k, n, part, member) {
    for (i = 1; i <= n_pages; i++) is_page[page_name(page[i])] = page[i]
    for (i = 1; i <= n_items; i++) {
        k = item_kind[i]
        if (k == "constant") constant[item_name[i]] = 1
        if (k == "function" || k == "callback") is_function[item_name[i]] = item_page[i]
        if (k == "struct" || k == "opaque") is_struct[item_name[i]] = item_page[i]
        if (k != "enum") continue
        n = members_of(item_body[i], ",")
        for (part = 1; part <= n; part++) {
            member = member_code[part]
            sub(/ .*/, "", member)
            constant[member] = 1
            if (item_page[i] == "status") meaning[member] = member_text[part]
            if (item_page[i] == "status") order[++n_statuses] = member
        }
    }
}

# Function names without their first words, as in "inside shmtrain_store_run or _train"; and "_USAGE".
function whole_name(word,    name) {
    if (("shmtrain_store" word) in is_function) return "shmtrain_store" word
    if (("SHMTRAIN_E" word) in constant) return "SHMTRAIN_E" word
    for (name in constant)
        if (substr(name, length(name) - length(word) + 1) == word) return name
    return word
}

function put_links(    i) {
    print "libshmtrain shmtrain"
    for (i = 1; i <= n_items; i++)
        if (item_kind[i] ~ /^(function|callback|struct)$/ && !(item_name[i] in is_page))
            print item_name[i], page_name(item_page[i])
}

# ---- words ----

function replace(s, from, to,    at, out) {
    while ((at = index(s, from)) > 0) {
        out = out substr(s, 1, at - 1) to
        s = substr(s, at + length(from))
    }
    return out s
}

# One word of a text as roff wants it, with names marked.
function marked(word,    before, name, behind) {
    word = replace(word, "\\", "\\e")
    if (word ~ /^\.+$/) return word "\\&" # between numbers: it ends no sentence
    if (word ~ /^-|--/) word = replace(word, "-", "\\-")
    if (match(word, /`[^`]*`/))
        return substr(word, 1, RSTART - 1) "\\fI" substr(word, RSTART + 1, RLENGTH - 2) "\\fR" substr(word, RSTART + RLENGTH)
    if (match(word, /^[(]*[*][a-z]/) && !match(word, /[a-z][*]/)) return word # *out
    if (!match(word, /_?[A-Za-z][A-Za-z0-9_]*/)) return word
    before = substr(word, 1, RSTART - 1)
    name = substr(word, RSTART, RLENGTH)
    behind = substr(word, RSTART + RLENGTH)
    if (name ~ /^_/) name = whole_name(name)
    if (behind ~ /^\.h/ && ("shmtrain_" name) in is_page && before !~ /\/$/)
        return before "\\fBshmtrain_" name "\\fR(3)" substr(behind, 3)
    if (name in is_function && !(name in is_struct && struct_before))
        return before "\\fB" name "\\fR" (behind ~ /^[.(][a-z(]/ ? "" : "()") behind
    if (name in is_struct || name in is_page || behind ~ /^\(\)/) return before "\\fB" name "\\fR" behind
    return before name behind
}

# A line of text begins with no command of roff's.
function put_line(line) {
    line = replace(replace(line, SLANTED, "\\fI"), UPRIGHT, "\\fR")
    if (line ~ /^[.']/) line = "\\&" line
    if (line != "") print line
}

# Words in lines of at most 78 characters; a sentence ends its line.
function put_words(text,    n, word, i, line, next_word) {
    if (match(text, /[*][a-z][a-z ]*[a-z][*]/)) # *so*
        text = substr(text, 1, RSTART - 1) SLANTED substr(text, RSTART + 1, RLENGTH - 2) UPRIGHT substr(text, RSTART + RLENGTH)
    n = split(text, word, /[ \n]+/)
    line = ""
    for (i = 1; i <= n; i++) {
        if (word[i] == "") continue
        struct_before = i > 1 && word[i - 1] ~ /struct$/
        next_word = marked(word[i])
        if (line != "" && length(line) + 1 + length(next_word) > 78) {
            put_line(line)
            line = ""
        }
        line = line (line == "" ? "" : " ") next_word
        if (word[i] ~ /([^.A-Z]|[A-Z_][A-Z])[.?!][)"]*$/) {
            put_line(line)
            line = ""
        }
    }
    put_line(line)
}

# Paragraphs, and lines of code, which are indented.
function put_text(text, is_first,    n, line, i, words, in_code) {
    n = split(text, line, "\n")
    for (i = 1; i <= n + 1; i++) {
        if (i <= n && line[i] !~ /^(    .*)?$/) {
            if (in_code) print ".Ed"
            if (in_code) is_first = 0
            in_code = 0
            words = words " " line[i]
            continue
        }
        if (words != "") {
            if (!is_first) print ".Pp"
            put_words(substr(words, 2))
            is_first = 0
            words = ""
        }
        if (i > n || line[i] == "") continue
        if (!in_code) print ".Bd -literal -offset indent"
        in_code = 1
        put_code(substr(line[i], 5))
    }
    if (in_code) print ".Ed"
}

function put_code(line) {
    line = replace(line, "\\", "\\e")
    print (line ~ /^[.']/ ? "\\&" : "") line
}

# The first sentence; of a long one what stands before its colon.
function summary_of(p,    i, text) {
    for (i = 1; i <= n_items; i++)
        if (item_page[i] == p && item_kind[i] == "about") text = tidy(item_text[i])
    if (match(text, /\. [A-Z]/)) text = substr(text, 1, RSTART)
    sub(/\.$/, "", text)
    if (p == "shmtrain") sub(/^libshmtrain: /, "", text)
    if (length(text) > 100 && index(text, ": ") > 0) text = substr(text, 1, index(text, ": ") - 1)
    return text ~ /^[A-Z][a-z]/ ? tolower(substr(text, 1, 1)) substr(text, 2) : text
}

# ---- declarations ----

# Cuts what stands between braces into member_code[1 .. n] and member_text[1 .. n]. A comment belongs to the member in whose
# line it begins, else to the next one.
function members_of(body, separator,    n, at, code, depth, c, had_line, pending, end) {
    n = 0
    code = ""
    depth = 0
    had_line = 1
    pending = ""
    for (at = 1; at <= length(body); at++) {
        c = substr(body, at, 1)
        if (substr(body, at, 2) == "/*") {
            end = index(substr(body, at), "*/")
            if (tidy(code) != "" && depth == 0) {
                add_member(++n, code, pending) # the last one of an enum
                code = pending = ""
            }
            if (had_line)
                pending = words_of(substr(body, at, end + 1))
            else
                member_text[n] = words_of(substr(body, at, end + 1))
            at += end
            continue
        }
        if (c ~ /[({]/) depth++
        if (c ~ /[)}]/) depth--
        if (c == "\n" && tidy(code) == "") had_line = 1
        if (c == separator && depth == 0) {
            add_member(++n, code, pending)
            code = pending = ""
            had_line = 0
            continue
        }
        code = code c
        if (c !~ /[ \t\n]/) had_line = 0
    }
    if (tidy(code) != "") add_member(++n, code, pending)
    return n
}

function add_member(n, code, text) {
    member_code[n] = tidy(code)
    member_text[n] = text
}

function put_members(body, separator,    n, i) {
    n = members_of(body, separator)
    print ".Bl -tag -width Ds -compact"
    for (i = 1; i <= n; i++) {
        print ".It " (separator == "," ? "Dv " : "Va ") quoted(member_code[i])
        put_text(member_text[i], 1)
    }
    print ".El"
}

function quoted(s) { return index(s, " ") ? "\"" replace(s, "-", "\\-") "\"" : s }

# "name" "argument" "argument", of a function's declaration.
function arguments_of(i,    list, at, c, depth, out, argument) {
    list = item_code[i]
    list = substr(list, index(list, "(") + 1)
    list = substr(list, 1, length(list) - 1)
    depth = 0
    for (at = 1; at <= length(list) + 1; at++) {
        c = substr(list, at, 1)
        if (c == "(") depth++
        if (c == ")") depth--
        if ((c == "," && depth == 0) || c == "") {
            out = out " \"" tidy(argument) "\""
            argument = ""
        } else {
            argument = argument c
        }
    }
    return item_name[i] out
}

function type_of(i,    code) {
    code = substr(item_code[i], 1, index(item_code[i], item_name[i]) - 1)
    return tidy(code)
}

function put_synopsis(p,    i) {
    print ".Sh SYNOPSIS\n.In shmtrain/" p ".h"
    for (i = 1; i <= n_items; i++) {
        if (item_page[i] != p) continue
        if (item_kind[i] == "struct" || item_kind[i] == "opaque")
            print ".Vt " (item_code[i] ~ /^typedef/ ? "typedef struct " item_name[i] " " item_name[i] : "struct " item_name[i]) " ;"
        if (item_kind[i] == "function" || item_kind[i] == "callback")
            print ".Ft " type_of(i) "\n.Fn " arguments_of(i)
    }
}

# In a list: -compact, with a gap before all that do not share their words with the ones before.
function put_item(i, is_shared, is_first) {
    if (!is_shared && !is_first) print ".Pp"
    if (item_kind[i] == "constant") {
        if (item_name[i] ~ /[(]/) print ".It Dv " quoted(item_name[i])
        else print ".It Dv " item_name[i] " No = " item_code[i]
        put_text(item_text[i], 1)
    } else if (item_kind[i] == "enum") {
        print ".It Vt enum" (item_name[i] == "" ? "" : " " item_name[i])
    } else if (item_kind[i] == "struct" || item_kind[i] == "opaque") {
        print ".It Vt struct " item_name[i]
    } else {
        print ".It Fn " arguments_of(i)
    }
    if (item_kind[i] != "constant") put_text(item_text[i], 1)
    if (item_kind[i] == "struct" || item_kind[i] == "enum") {
        if (item_text[i] != "") print ".Pp"
        put_members(item_body[i], item_kind[i] == "enum" ? "," : ";")
    }
}

# 1: it was not open.
function open_list(is_headed) {
    if (list_is_open) return 0
    if (!is_headed) print ".Pp"
    print ".Bl -tag -width Ds -compact"
    list_is_open = 1
    return 1
}

function close_list() {
    if (list_is_open) print ".El"
    list_is_open = 0
}

function put_description(p,    i, k, is_headed) {
    print ".Sh DESCRIPTION"
    for (i = 1; i <= n_items; i++) {
        if (item_page[i] != p) continue
        k = item_kind[i]
        is_headed = i > 1 && item_kind[i - 1] == "section" && item_text[i - 1] == ""
        if (k == "about") {
            put_text(item_text[i], 1)
            put_namesake(p)
        } else if (k == "section") {
            close_list()
            print ".Ss " toupper(substr(item_name[i], 1, 1)) substr(item_name[i], 2)
            put_text(item_text[i], 1)
        } else if (k == "text") {
            close_list()
            put_text(item_text[i], 0)
        } else if (k != "opaque" || item_text[i] != "") {
            put_item(i, i > 1 && item_shares[i - 1], open_list(is_headed))
        }
    }
    close_list()
}

function put_namesake(p) {
    if (!(page_name(p) in is_function) || is_function[page_name(p)] == p) return
    print ".Pp\nThe function"
    print ".Fn " page_name(p)
    print "is described in\n.Xr " page_name(is_function[page_name(p)]) " 3 ."
}

# ---- pages ----

function put_head(name) {
    print ".\\\" Made from the public headers by man/headers.awk and man/page.awk."
    print ".Dd " date "\n.Dt " toupper(name) " 3\n.Os\n.Sh NAME"
}

function put_library() {
    print ".Sh LIBRARY\nlibshmtrain\n.Pq Li pkg-config \\-\\-cflags \\-\\-libs shmtrain"
}

function put_name(p,    i, list, n, name) {
    n = 1
    name[1] = page_name(p)
    for (i = 1; i <= n_items; i++)
        if (item_page[i] == p && item_kind[i] == "function" && !(item_name[i] in is_page)) name[++n] = item_name[i]
    for (i = 1; i <= n; i++) print ".Nm " name[i] (i < n ? " ," : "")
    print ".Nd " summary_of(p)
}

function returns_status(p,    i) {
    for (i = 1; i <= n_items; i++)
        if (item_page[i] == p && item_kind[i] == "function" && type_of(i) == "int" && p != "status") return 1
    return 0
}

function put_return_values() {
    print ".Sh RETURN VALUES\nFunctions of type\n.Vt int"
    print "return 0 or a positive number, or when they fail a negative status, of which"
    print ".Xr shmtrain_status 3\nhas the list."
    print "What is written to by a pointer is set on success only."
}

# The statuses that this page names, with what they mean and who returns them.
function put_errors(p,    i, k, name, who, is_named, n_found) {
    if (p == "status") return
    for (k = 1; k <= n_statuses; k++) {
        name = order[k]
        who = ""
        is_named = 0
        for (i = 1; i <= n_items; i++) {
            if (item_page[i] != p || !names_status(words_about(i), name)) continue
            is_named = 1
            if (item_kind[i] == "function") who = who (who == "" ? "" : " ,\n") ".Fn " item_name[i]
        }
        if (!is_named) continue
        if (n_found++ == 0) print ".Sh ERRORS\n.Bl -tag -width Ds"
        print ".It Dv " name
        put_words(meaning[name] (who == "" ? "." : ":"))
        if (who != "") print who " ."
    }
    if (n_found > 0) print ".El"
}

function words_about(i) {
    while (item_shares[i]) i++
    return item_text[i]
}

# "SHMTRAIN_E_USAGE" or "_USAGE".
function names_status(text, name) {
    text = " " tidy(text) " "
    gsub(/_[A-Z]+ is none/, "", text)
    return text ~ ("[^A-Z](SHMTRAIN_E)?" substr(name, 11) "[^A-Z]")
}

function put_see_also(p,    i, list) {
    list = ".Sh SEE ALSO\n.Xr shmtrain 1" (p == "shmtrain" ? "" : " ,\n.Xr shmtrain 3")
    for (i = 1; i <= n_pages; i++)
        if (p != "shmtrain" && page[i] != p && page[i] != "shmtrain") list = list " ,\n.Xr " page_name(page[i]) " 3"
    print list
}

function put_page() {
    if (!(page_name(want) in is_page)) fail("there is no header " want ".h")
    put_head(page_name(want))
    put_name(want)
    put_library()
    put_synopsis(want)
    put_description(want)
    if (returns_status(want)) put_return_values()
    put_errors(want)
    put_see_also(want)
}

function put_overview(    i, line) {
    put_head("shmtrain")
    print ".Nm shmtrain ,\n.Nm libshmtrain\n.Nd " summary_of("shmtrain")
    put_library()
    print ".Sh SYNOPSIS\n.In shmtrain/shmtrain.h\n.Sh DESCRIPTION"
    put_text("The header includes all the others, each of which has a page; a function's name leads to its page, too.", 1)
    print ".Bl -tag -width Ds"
    for (i = 1; i <= n_pages; i++) {
        if (page[i] == "shmtrain") continue
        print ".It Xr " page_name(page[i]) " 3"
        put_words(summary_of(page[i]))
    }
    print ".El\n.Sh EXAMPLES\n.Bd -literal"
    while ((getline line < example) > 0) put_code(line)
    print ".Ed"
    put_see_also("shmtrain")
}
