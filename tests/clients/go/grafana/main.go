// SPDX-License-Identifier: Apache-2.0

// Grafana calls every method of querier.v1 with the client that Pyroscope generates and Grafana's data source uses: in
// protobuf and JSON, plain and gzip'd, and over gRPC and gRPC-Web. The responses must be equal, and their sums those of Cairn's commands. It prints
// one TAP-like line for each check and exits with 1 if one fails.
//
//	grafana URL GRPC-URL START-MS END-MS TYPE FOLDED-FILE TOP-JSON SERIES-JSON
//
// The files contain the output of `cairn flame`, `cairn top --json` and `cairn query --series --step 1m --json` for
// that range and type.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	settingsv1 "github.com/grafana/pyroscope/api/gen/proto/go/settings/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/settings/v1/settingsv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	vcsv1 "github.com/grafana/pyroscope/api/gen/proto/go/vcs/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/vcs/v1/vcsv1connect"
	"google.golang.org/protobuf/proto"
)

var failed bool

func check(ok bool, name string, details ...any) {
	if ok {
		fmt.Println("ok -", name)
		return
	}
	failed = true
	fmt.Println("not ok -", name, fmt.Sprint(details...))
}

// asGrafana adds the headers that Grafana's proxy sends.
type asGrafana struct{}

func (asGrafana) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Scope-OrgID", "tenant")
	r.Header.Set("User-Agent", "Grafana/12")
	return http.DefaultTransport.RoundTrip(r)
}

// withoutTLS speaks HTTP/2 from the first byte, as gRPC clients do.
var withoutTLS = func() http.RoundTripper {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}()

type sums map[string]int64

func equal(a, b sums) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// readFolded sums the lines of `cairn flame` by stack.
func readFolded(path string) sums {
	data, err := os.ReadFile(path)
	check(err == nil, "cairn flame has an answer", err)
	s := sums{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		at := strings.LastIndex(line, " ")
		value, _ := strconv.ParseInt(line[at+1:], 10, 64)
		s[strings.ReplaceAll(line[:at], "_[k]", "")] += value
	}
	return s
}

// side is one side of a flame graph; width is 4, or 7 for a diff.
func readFlame(names []string, levels []*querierv1.Level, side, width int) sums {
	type node struct {
		begin, end int64
		path       string
	}
	s, above := sums{}, []node{}
	for depth, level := range levels {
		var here []node
		at := int64(0)
		for i := 0; i < len(level.Values); i += width {
			v := level.Values[i+side*3:]
			begin := at + v[0]
			at = begin + v[1]
			path := ""
			for _, p := range above {
				if p.begin <= begin && at <= p.end {
					path = p.path
					break
				}
			}
			if depth > 0 {
				if path != "" {
					path += ";"
				}
				path += names[level.Values[i+width-1]]
			}
			if v[2] != 0 {
				s[path] += v[2]
			}
			here = append(here, node{begin, at, path})
		}
		above = here
	}
	return s
}

func readProfile(p *profilev1.Profile) sums {
	functions, locations := map[uint64]string{}, map[uint64][]string{}
	for _, f := range p.Function {
		functions[f.Id] = p.StringTable[f.Name]
	}
	for _, l := range p.Location {
		for _, line := range l.Line {
			locations[l.Id] = append(locations[l.Id], functions[line.FunctionId])
		}
	}
	s := sums{}
	for _, sample := range p.Sample {
		var stack []string
		for i := len(sample.LocationId) - 1; i >= 0; i-- {
			lines := locations[sample.LocationId[i]]
			for k := len(lines) - 1; k >= 0; k-- {
				stack = append(stack, lines[k])
			}
		}
		s[strings.Join(stack, ";")] += sample.Value[0]
	}
	return s
}

// flats sums self values by function.
func flats(s sums) sums {
	ret := sums{}
	for stack, v := range s {
		ret[stack[strings.LastIndex(stack, ";")+1:]] += v
	}
	return ret
}

func readTop(path string) sums {
	var rows []struct {
		Function string
		Flat     int64
	}
	data, _ := os.ReadFile(path)
	check(json.Unmarshal(data, &rows) == nil, "cairn top has an answer")
	s := sums{}
	for _, r := range rows {
		if r.Flat != 0 {
			s[r.Function] += r.Flat
		}
	}
	return s
}

func readSeries(path string) sums {
	var answer struct{ Points [][]int64 }
	data, _ := os.ReadFile(path)
	check(json.Unmarshal(data, &answer) == nil, "cairn query --series has an answer")
	s := sums{}
	for _, p := range answer.Points {
		if p[2] != 0 {
			s[fmt.Sprint(p[0])] = p[1]
		}
	}
	return s
}

func main() {
	url, kind, ctx := os.Args[1], os.Args[5], context.Background()
	start, _ := strconv.ParseInt(os.Args[3], 10, 64)
	end, _ := strconv.ParseInt(os.Args[4], 10, 64)
	folded, top, series := readFolded(os.Args[6]), readTop(os.Args[7]), readSeries(os.Args[8])
	selection := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: kind, LabelSelector: "{}", Start: start, End: end}
	first := map[string]proto.Message{}
	for _, codec := range []struct {
		name    string
		url     string
		options []connect.ClientOption
	}{
		{"proto", url, nil},
		{"proto, gzip", url, []connect.ClientOption{connect.WithSendGzip()}},
		{"JSON", url, []connect.ClientOption{connect.WithProtoJSON()}},
		{"JSON, gzip", url, []connect.ClientOption{connect.WithProtoJSON(), connect.WithSendGzip()}},
		{"gRPC", os.Args[2], []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC, gzip", os.Args[2], []connect.ClientOption{connect.WithGRPC(), connect.WithSendGzip()}},
		{"gRPC-Web", url, []connect.ClientOption{connect.WithGRPCWeb()}},
		{"gRPC-Web, gzip", url, []connect.ClientOption{connect.WithGRPCWeb(), connect.WithSendGzip()}},
	} {
		web := &http.Client{Transport: asGrafana{}}
		if codec.url != url {
			web = &http.Client{Transport: withoutTLS}
		}
		client := querierv1connect.NewQuerierServiceClient(web, codec.url, codec.options...)
		// same checks that a response equals that of the first codec.
		same := func(method string, m proto.Message, err error) {
			if err == nil && first[method] == nil {
				first[method] = m
			}
			check(err == nil && proto.Equal(first[method], m), codec.name+": "+method, err, m)
		}
		types, err := client.ProfileTypes(ctx, connect.NewRequest(&querierv1.ProfileTypesRequest{Start: start, End: end}))
		same("ProfileTypes", types.Msg, err)
		check(len(types.Msg.ProfileTypes) > 0 && types.Msg.ProfileTypes[0].SampleType != "", codec.name+": a type has its parts")
		names, err := client.LabelNames(ctx, connect.NewRequest(&typesv1.LabelNamesRequest{Start: start, End: end}))
		same("LabelNames", names.Msg, err)
		values, err := client.LabelValues(ctx, connect.NewRequest(&typesv1.LabelValuesRequest{Name: "service_name", Start: start, End: end}))
		same("LabelValues", values.Msg, err)
		check(len(values.Msg.Names) > 0, codec.name+": there is a service")
		sets, err := client.Series(ctx, connect.NewRequest(&querierv1.SeriesRequest{
			LabelNames: []string{"service_name", "__profile_type__"}, Start: start, End: end}))
		same("Series", sets.Msg, err)
		check(len(sets.Msg.LabelsSet) > 0, codec.name+": there is a series")
		stacks, err := client.SelectMergeStacktraces(ctx, connect.NewRequest(selection))
		same("SelectMergeStacktraces", stacks.Msg, err)
		flame := readFlame(stacks.Msg.Flamegraph.Names, stacks.Msg.Flamegraph.Levels, 0, 4)
		check(equal(flame, folded), codec.name+": the flame graph is that of cairn flame", flame, folded)
		check(equal(flats(flame), top), codec.name+": its functions are those of cairn top", flats(flame), top)
		tree := proto.Clone(selection).(*querierv1.SelectMergeStacktracesRequest)
		tree.Format = querierv1.ProfileFormat_PROFILE_FORMAT_TREE
		answer, err := client.SelectMergeStacktraces(ctx, connect.NewRequest(tree))
		same("SelectMergeStacktraces, tree", answer.Msg, err)
		check(len(answer.Msg.Tree) > 0, codec.name+": the tree has bytes")
		few := proto.Clone(selection).(*querierv1.SelectMergeStacktracesRequest)
		few.MaxNodes = proto.Int64(3)
		answer, err = client.SelectMergeStacktraces(ctx, connect.NewRequest(few))
		same("SelectMergeStacktraces, few nodes", answer.Msg, err)
		check(answer.Msg.Flamegraph.Total == stacks.Msg.Flamegraph.Total, codec.name+": few nodes have the same total")
		few.Format = querierv1.ProfileFormat_PROFILE_FORMAT_PPROF
		answer, err = client.SelectMergeStacktraces(ctx, connect.NewRequest(few))
		check(err == nil && equal(readProfile(answer.Msg.Pprof.Profile), folded), codec.name+": SelectMergeStacktraces, pprof", err)
		profile, err := client.SelectMergeProfile(ctx, connect.NewRequest(&querierv1.SelectMergeProfileRequest{
			ProfileTypeID: kind, LabelSelector: "{}", Start: start, End: end}))
		check(err == nil && equal(readProfile(profile.Msg), folded), codec.name+": the profile is that of cairn flame", err, readProfile(profile.Msg), folded)
		spans, err := client.SelectMergeSpanProfile(ctx, connect.NewRequest(&querierv1.SelectMergeSpanProfileRequest{
			ProfileTypeID: kind, LabelSelector: "{}", SpanSelector: []string{"00f067aa0ba902b7"}, Start: start, End: end}))
		same("SelectMergeSpanProfile", spans.Msg, err)
		points, err := client.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{
			ProfileTypeID: kind, LabelSelector: "{}", Start: start, End: end, Step: 60}))
		same("SelectSeries", points.Msg, err)
		got := sums{}
		for _, s := range points.Msg.Series {
			for _, p := range s.Points {
				got[fmt.Sprint(p.Timestamp)] += int64(p.Value)
			}
		}
		check(equal(got, series), codec.name+": the points are those of cairn query", got, series)
		average := typesv1.TimeSeriesAggregationType_TIME_SERIES_AGGREGATION_TYPE_AVERAGE
		points, err = client.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{ProfileTypeID: kind, LabelSelector: "{}",
			Start: start, End: end, Step: 60, GroupBy: []string{"service_name"}, Aggregation: &average, Limit: proto.Int64(1)}))
		same("SelectSeries, by service", points.Msg, err)
		check(len(points.Msg.Series) == 1, codec.name+": one series of the limit")
		diff, err := client.Diff(ctx, connect.NewRequest(&querierv1.DiffRequest{Left: selection, Right: selection}))
		same("Diff", diff.Msg, err)
		for side := 0; side < 2; side++ {
			got := readFlame(diff.Msg.Flamegraph.Names, diff.Msg.Flamegraph.Levels, side, 7)
			check(equal(got, folded), codec.name+": a side of a diff is that of cairn flame", got, folded)
		}
		stats, err := client.GetProfileStats(ctx, connect.NewRequest(&typesv1.GetProfileStatsRequest{}))
		same("GetProfileStats", stats.Msg, err)
		check(stats.Msg.DataIngested && stats.Msg.OldestProfileTime <= stats.Msg.NewestProfileTime, codec.name+": there are samples")
		analysis, err := client.AnalyzeQuery(ctx, connect.NewRequest(&querierv1.AnalyzeQueryRequest{Query: kind + "{}", Start: start, End: end}))
		same("AnalyzeQuery", analysis.Msg, err)
		check(len(analysis.Msg.QueryScopes) == 1 && analysis.Msg.QueryScopes[0].SampleCount > 0, codec.name+": the query reads samples")

		_, err = client.SelectHeatmap(ctx, connect.NewRequest(&querierv1.SelectHeatmapRequest{}))
		check(connect.CodeOf(err) == connect.CodeUnimplemented, codec.name+": SelectHeatmap is not here", err)
		_, err = client.SelectMergeStacktraces(ctx, connect.NewRequest(&querierv1.SelectMergeStacktracesRequest{ProfileTypeID: kind, LabelSelector: "{a"}))
		check(connect.CodeOf(err) == connect.CodeInvalidArgument, codec.name+": a malformed selector is an invalid argument", err)
		_, err = settingsv1connect.NewSettingsServiceClient(web, codec.url, codec.options...).Get(ctx, connect.NewRequest(&settingsv1.GetSettingsRequest{}))
		check(connect.CodeOf(err) == connect.CodeUnimplemented, codec.name+": settings are not here", err)
		_, err = vcsv1connect.NewVCSServiceClient(web, codec.url, codec.options...).GithubApp(ctx, connect.NewRequest(&vcsv1.GithubAppRequest{}))
		check(connect.CodeOf(err) == connect.CodeUnimplemented, codec.name+": version control is not here", err)
	}
	if failed {
		os.Exit(1)
	}
}
