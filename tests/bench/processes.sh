# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # variables of the script that sources this
#
# Part of tests/bench/run-symbols: compares whole processes on the same addresses.

# Addresses spread over all functions of a file, deterministic.
function_addresses() {
        readelf -sW "$1" 2>/dev/null | perl -e 'srand 1;
                while (<STDIN>) {
                        my (undef, $start, $size, $type) = split;
                        next unless ($type // "") eq "FUNC" && $size ne "0" && $start !~ /^0+$/;
                        push @f, [hex $start, $size =~ /^0x/ ? hex $size : $size];
                }
                @f or exit 1;
                for (1 .. shift) { my $f = $f[rand @f]; printf "0x%x\n", $f->[0] + int rand $f->[1] }' "$2"
}

# in_turns FILE COMMAND... -- COMMAND...: the least wall clock seconds of each command, run in turns with FILE on stdin;
# "-" for one that fails or takes longer than BENCH_SECONDS. A command that takes more than a second runs once after its
# warm-up run, one that takes more than five seconds is not repeated.
in_turns() {
        perl -MTime::HiRes=time -e 'my ($runs, $limit, $in) = splice @ARGV, 0, 3;
                my @commands = ([]); $_ eq "--" ? push @commands, [] : push @{ $commands[-1] }, $_ for @ARGV;
                my @best;
                for my $run (0 .. $runs) { for my $i (0 .. $#commands) {
                        next if $run && ($best[$i] eq "-" || $best[$i] > 5 || ($run > 1 && $best[$i] > 1));
                        my $began = time; my $pid = fork // die;
                        if (!$pid) {
                                setpgrp; open STDIN, "<", $in; open STDOUT, ">", "/dev/null"; open STDERR, ">&", \*STDOUT;
                                exec @{ $commands[$i] }; exit 127;
                        }
                        my $late = 0; local $SIG{ALRM} = sub { $late = 1; kill "KILL", -$pid }; alarm $limit;
                        1 while waitpid($pid, 0) < 0; my $failed = $?; alarm 0;
                        my $took = time - $began;
                        if ($failed || $late) { $best[$i] = "-"; next }
                        $best[$i] = $took if $run <= 1 || $took < $best[$i] } }
                print join(" ", map { $_ eq "-" ? $_ : sprintf "%.4f", $_ } @best), "\n"' "$RUNS" "$BENCH_SECONDS" "$@"
}

# ask_in_turns FILE INPUT COUNT: rows for the peers that have been fast enough so far.
ask_in_turns() {
        head -n "$3" "$work/addresses" >"$work/few"
        file=$1 input=$2 count=$3
        set -- "$CAIRN_BUILD/cairn" symbolize --no-cache -e "$file" -- \
                env CAIRN_CACHE_DIR="$work/cache" "$CAIRN_BUILD/cairn" symbolize -e "$file"
        for peer in $fast; do
                p=$(tool "$peer") || continue
                case $peer in
                llvm-symbolizer) set -- "$@" -- "$p" --inlines --demangle --obj="$file" ;;
                *) set -- "$@" -- "$p" -f -i -C -e "$file" ;;
                esac
        done
        took=$(in_turns "$work/few" "$@")
        # shellcheck disable=SC2086  # word splitting is intended
        set -- $took
        cold=$1 cached=$2 still=
        shift 2
        if [ "$cold" = - ] || [ "$cached" = - ]; then
                echo "# cairn fails on $count addresses of $input, or takes more than $BENCH_SECONDS s"
                return
        fi
        for peer in $fast; do
                tool "$peer" >/dev/null 2>&1 || continue
                if [ "$1" = - ]; then
                        echo "# $peer fails on $count addresses of $input, or takes more than $BENCH_SECONDS s"
                else
                        printf '= process|%s|%s|%s s|%s s|%s|%s s|%s|%s\n' \
                                "$input" "$count" "$cold" "$cached" "$peer" "$1" \
                                "$(calc %.2f "$1 / $cold")" "$(calc %.2f "$1 / $cached")"
                        still="$still $peer"
                fi
                shift
        done
        [ -n "$still" ] || row process "$input" "$count" "$cold s" "$cached s" "" "|"
        fast=$still
}

bench_symbolize() {
        echo "# symbolize: whole processes, addresses on stdin, inlined frames, readable names; seconds of wall clock"
        for file in $(inputs); do
                [ "$file" != "$CAIRN_BUILD/cairn" ] || continue
                describe "$file"
                if ! function_addresses "$file" 1000000 >"$work/addresses"; then
                        echo "# no functions in $file"
                        continue
                fi
                head -n 10000 "$work/addresses" |
                        CAIRN_CACHE_DIR=$work/cache "$CAIRN_BUILD/cairn" symbolize -e "$file" >/dev/null
                fast="llvm-symbolizer eu-addr2line addr2line"
                for n in 1 10 1000 100000 1000000; do
                        ask_in_turns "$file" "$(basename "$file")" "$n"
                done
        done
}
