# Of pages, a table of struct topic (topics.h): a page begins with a line "== name: about", or "== name", and ends before the empty
# line above the next one.
function put(line) {
    gsub(/[\\"]/, "\\\\&", line)
    print "\"" line "\\n\""
}

BEGIN { print "const struct topic " table "[] = {" }

/^== / {
    if (pages++) print "},"
    name = about = substr($0, 4)
    sub(/: .*/, "", name)
    print "{\"" name "\", " (sub(/^[^:]*: /, "", about) ? "\"" about "\"" : "0") ","
    empty = 0
    next
}

# An empty line is the page's if more of it follows.
/^$/ { empty++; next }

{
    for (; empty > 0; empty--) put("")
    put($0)
}

END { print "}, {0, 0, 0}};" }
