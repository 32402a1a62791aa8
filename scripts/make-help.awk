# SPDX-License-Identifier: Apache-2.0
#
# make help: prints "target: ... ## text" of the makefiles under the headings "##@ text", in lines of WIDTH columns.
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
        print "\nFor every target: O=DIR builds in DIR instead of build/, DEBUG=1 builds without optimisation,"
        print "SAN=address,undefined or SAN=thread with sanitizers, CC=clang with clang, WERROR=1 makes warnings errors,"
        print "V=1 prints the commands, JOBS=N runs N jobs at a time."
}
