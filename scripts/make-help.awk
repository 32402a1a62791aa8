# SPDX-License-Identifier: Apache-2.0
#
# make help: "target: ... ## text" of the makefiles, below the headings "##@ text", in lines of WIDTH columns.
BEGIN {
        WIDTH = 110
        INDENT = 19
}
/^##@ / {
        print "\n" substr($0, 5)
}
/^[a-z0-9_.-]+:.*## / {
        target = $0
        sub(/:.*/, "", target)
        text = $0
        sub(/.*## /, "", text)
        line = sprintf("  %-" (INDENT - 3) "s", target)
        words = split(text, word, " ")
        for (i = 1; i <= words; i++) {
                if (length(line) + 1 + length(word[i]) > WIDTH && length(line) > INDENT) {
                        print line
                        line = sprintf("%" (INDENT - 1) "s", "")
                }
                line = line " " word[i]
        }
        print line
}
END {
        print "\nWith each of them: O=DIR builds elsewhere than in build/, DEBUG=1 without optimisation, SAN=address,undefined or"
        print "SAN=thread with sanitizers, CC=clang, WERROR=1, V=1 prints the commands, JOBS=N."
}
