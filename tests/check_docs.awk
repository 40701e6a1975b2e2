# Holds what commands print against what a page shows: awk -v live=1 -f check_docs.awk SHOWN PRINTED. Prints the first line that
# differs; exit status 1.
#
# A line of "..." stands for any lines. Lines that depend on the machine are left out of both. Of all others words, indentation,
# line breaks and the widths of tables have to be the same, and numbers, too, but for these:
#
#   times, rates, delays, waits, merges    any number: they are of the moment
#   losses and scores of a live run        within a tenth (of single epochs a half), counts within 5: its workers take turns in no
#                                          fixed order
#   hashes of a live run                   any hash, for the same reason
#
# live=0: a sync run, of which losses, scores and hashes have to be the same.

function is_of_machine(line) {
    return line ~ /^            (more than there are cores|on OpenBLAS )/ ||
        line !~ /^lesson / && line ~ /^[^ ]+ +[a-z-]+ +[0-9]+ +[0-9]+ +[0-9.]+ [KMG]?i?B / # a store of somebody else
}

# A number and its unit are one word.
function plain(line) {
    while (match(line, /[0-9] [kMG%]( |$)/)) line = substr(line, 1, RSTART) "" substr(line, RSTART + 2)
    return line
}

function is_number(w) { return w ~ /^[(]?[-+<]?[0-9][0-9,]*([.][0-9]+)?(e[-+]?[0-9]+)?[kMG]?[%x]?[,.;:)]*$/ }

function value(w) {
    gsub(/[(),;:x%kMG]/, "", w)
    sub(/[.]$/, "", w)
    return w + 0
}

function near(a, b, share,    apart) {
    apart = a > b ? a - b : b - a
    return apart <= (b > 0 ? b : -b) * share || apart <= 0.02 || apart <= 5 && a == int(a) && b == int(b)
}

# Whose numbers: "facts" are the same everywhere, "scores" of a run, "moment" of the moment. Sets `table`, whose rows follow.
function kind_of(line) {
    if (line == "") table = ""
    if (line ~ /^(epoch +(train loss|objective)|  mode +(-w +)?seconds|worker +examples|NAME +MODEL|classes +precision|confusion|calibration)/) {
        table = line ~ /^epoch/ ? "epochs" : line ~ /^(classes|confusion|calib)/ ? "scores" : "moment"
        return line ~ /^calib/ ? "scores" : "facts"
    }
    if (line ~ /^[{]/) return "json"
    if (line ~ /xxh64/) return "hash"
    if (line ~ /^(validation  loss|log loss |accuracy |Brier |AUC |calibration error)| right: |the model that made the data/) return "scores"
    if (line ~ /^(done:|delay |waiting |merging |available )|^ +to [0-9.]+$|^ +[0-9]+ merges|^shmtrain: worker /) return "moment"
    return table != "" ? table : "facts"
}

# The columns of a table stand to the right: a row is as wide as any other. In all else a number may be longer than another.
function skeleton(line, kind) {
    if (kind == "epochs") return length(line)
    line = plain(line)
    gsub(/[(]?[-+]?[0-9][0-9,]*([.][0-9]+)?(e[-+]?[0-9]+)?[kMG]?[%x]?/, "#", line)
    match(line, /^ */)
    if (kind == "moment" && table != "") return RLENGTH < 8
    gsub(/ +#/, " #", line)
    gsub(/# +/, "# ", line)
    return line
}

function without_hash(line) {
    sub(/[0-9a-f]+("[}])?$/, "#", line)
    return line
}

# Names and words of a JSON object; of a list of objects the first.
function json_names(line) {
    gsub(/"waited_for":\[[^]]*\]/, "", line)
    gsub(/[}](,[{][^]]*[}])+\]/, "}]", line)
    gsub(/"[0-9a-f]+"/, "#", line)
    gsub(/[-+]?[0-9][-+.0-9e]*/, "#", line)
    gsub(/"delay":null/, "\"delay\":#", line) # of a worker that came too late for any work
    return line
}

# May the number `is` stand where the page has `was`, in word number i of a line of this kind?
function may_be(kind, i, n, is, was) {
    if (kind == "moment") return 1
    if (kind == "epochs" && i > n - 2) return 1
    return live && i > (kind == "epochs") && (kind == "epochs" || kind == "scores") && near(value(is), value(was), kind == "epochs" ? 0.5 : 0.1)
}

function same(was, is,    kind, a, b, n, i) {
    kind = kind_of(was)
    if (was == is) return 1
    if (kind == "hash") return live && without_hash(was) == without_hash(is)
    if (kind == "json") return json_names(was) == json_names(is)
    if (skeleton(was, kind) != skeleton(is, kind)) return 0
    was = plain(was)
    is = plain(is)
    n = split(was, a, " ")
    if (split(is, b, " ") != n && !(kind == "moment" && table != "")) return 0
    for (i = 1; i <= n; i++) {
        if (a[i] == b[i] || kind == "moment" && (a[i] == "-" || b[i] == "-")) continue
        if (kind == "moment" && table != "" && i > 5 && b[i] == "") continue
        if (!is_number(a[i]) || !is_number(b[i]) || !may_be(kind, i, n, b[i], a[i])) return 0
    }
    return 1
}

# Delays are of the moment: how many there are, and whether a second line is needed. So is what ends a line about waiting,
# or about a stall.
function take(line, list, n) {
    if (is_of_machine(line)) return n
    if (line ~ /^            max [0-9,]+$/ && n > 0 && list[n] ~ /^delay /) return n
    if (line ~ /^delay       mean/) line = "delay       mean 0"
    sub(/ progress for [0-9]+ m?s, .*/, " progress", line)
    if (line ~ /^lesson /) sub(/ [0-9]+ (s|min|h)  /, " 1 s  ", line) # its age
    if (line ~ /^waiting /) sub(/, and [0-9.]+ % at the ends of epochs$/, "", line)
    list[++n] = line
    return n
}

FILENAME == ARGV[1] { n_shown = take($0, shown, n_shown); next }
{ n_printed = take($0, printed, n_printed) }

END {
    for (i = k = 1; i <= n_shown; i++) {
        if (shown[i] == "...") {
            if (i == n_shown) exit 0
            was_table = table
            for (; k <= n_printed && !same(shown[i + 1], printed[k]); k++) table = was_table
            continue
        }
        if (k > n_printed) {
            print "shown:   " shown[i] "\nprinted: nothing more"
            exit 1
        }
        if (!same(shown[i], printed[k])) {
            print "shown:   " shown[i] "\nprinted: " printed[k]
            exit 1
        }
        k++
    }
    if (k <= n_printed) {
        print "shown:   nothing more\nprinted: " printed[k]
        exit 1
    }
}
