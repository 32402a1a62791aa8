// SPDX-License-Identifier: Apache-2.0

// Parca tests Cairn with the clients that Parca generates: debuginfo uploads, WriteRaw, and the query API over gRPC and
// gRPC-Web.
//
//	parca HTTP-URL GRPC-ADDRESS PROGRAM BUILD-ID PPROF TOTAL
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	debuginfopb "github.com/parca-dev/parca/gen/proto/go/parca/debuginfo/v1alpha1"
	profilestorepb "github.com/parca-dev/parca/gen/proto/go/parca/profilestore/v1alpha1"
	querypb "github.com/parca-dev/parca/gen/proto/go/parca/query/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

var failed bool

func ok(passed bool, name string, details ...any) {
	if passed {
		fmt.Println("ok -", name)
		return
	}
	failed = true
	fmt.Println("not ok -", name)
	fmt.Println(details...)
}

func upload(conn *grpc.ClientConn, program, buildID string) {
	ctx := context.Background()
	client := debuginfopb.NewDebuginfoServiceClient(conn)
	should, err := client.ShouldInitiateUpload(ctx, &debuginfopb.ShouldInitiateUploadRequest{BuildId: buildID})
	ok(err == nil && should.ShouldInitiateUpload, "an unknown file is wanted", err, should)
	data, err := os.ReadFile(program)
	if err != nil {
		panic(err)
	}
	initiated, err := client.InitiateUpload(ctx, &debuginfopb.InitiateUploadRequest{BuildId: buildID, Size: int64(len(data)), Hash: "1234"})
	if err != nil {
		ok(false, "the upload begins", err)
		return
	}
	instructions := initiated.UploadInstructions
	ok(instructions.UploadStrategy == debuginfopb.UploadInstructions_UPLOAD_STRATEGY_GRPC, "the upload is to come over gRPC", initiated)
	stream, err := client.Upload(ctx)
	if err != nil {
		panic(err)
	}
	stream.Send(&debuginfopb.UploadRequest{Data: &debuginfopb.UploadRequest_Info{
		Info: &debuginfopb.UploadInfo{BuildId: instructions.BuildId, UploadId: instructions.UploadId, Type: instructions.Type}}})
	for at := 0; at < len(data); at += 4096 {
		stream.Send(&debuginfopb.UploadRequest{Data: &debuginfopb.UploadRequest_ChunkData{ChunkData: data[at:min(at+4096, len(data))]}})
	}
	sent, err := stream.CloseAndRecv()
	ok(err == nil && sent.Size == uint64(len(data)), "the file is taken", err, sent)
	_, err = client.MarkUploadFinished(ctx, &debuginfopb.MarkUploadFinishedRequest{BuildId: buildID})
	ok(err == nil, "and finished", err)
	should, err = client.ShouldInitiateUpload(ctx, &debuginfopb.ShouldInitiateUploadRequest{BuildId: buildID})
	ok(err == nil && !should.ShouldInitiateUpload, "it is not wanted again", err, should)
}

func write(conn *grpc.ClientConn, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	client := profilestorepb.NewProfileStoreServiceClient(conn)
	_, err = client.WriteRaw(context.Background(), &profilestorepb.WriteRawRequest{Series: []*profilestorepb.RawProfileSeries{{
		Labels: &profilestorepb.LabelSet{Labels: []*profilestorepb.Label{{Name: "__name__", Value: "process_cpu"}, {Name: "job", Value: "parca"}}},
		Samples: []*profilestorepb.RawSample{{RawProfile: data}},
	}}})
	ok(err == nil, "WriteRaw is taken", err)
}

// web makes one call over gRPC-Web, like connect-go for Grafana.
func web(url, method string, in, out proto.Message) error {
	message, err := proto.Marshal(in)
	if err != nil {
		return err
	}
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	req, _ := http.NewRequest("POST", url+"/parca.query.v1alpha1.QueryService/"+method, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/grpc-web+proto")
	req.Header.Set("X-Grpc-Web", "1")
	req.Header.Set("Grpc-Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/grpc-web+proto" {
		return fmt.Errorf("%s: %s", resp.Status, data)
	}
	for len(data) >= 5 {
		size := binary.BigEndian.Uint32(data[1:])
		frame := data[5 : 5+size]
		if data[0]&0x80 != 0 {
			if !strings.Contains(string(frame), "grpc-status: 0\r\n") {
				return fmt.Errorf("%s", frame)
			}
			return nil
		}
		if err := proto.Unmarshal(frame, out); err != nil {
			return err
		}
		data = data[5+size:]
	}
	return io.ErrUnexpectedEOF
}

func sumFlat(n *querypb.FlamegraphNode, depth int) int64 {
	total := n.Cumulative
	for _, c := range n.Children {
		total -= c.Cumulative
		total += sumFlat(c, depth+1)
	}
	return total
}

func query(conn *grpc.ClientConn, url string, want int64) {
	ctx := context.Background()
	client := querypb.NewQueryServiceClient(conn)
	start, end := timestamppb.New(time.Now().Add(-time.Hour)), timestamppb.New(time.Now().Add(time.Minute))
	types, err := client.ProfileTypes(ctx, &querypb.ProfileTypesRequest{})
	ok(err == nil && len(types.Types) > 0, "the types", err, types)
	labels, err := client.Labels(ctx, &querypb.LabelsRequest{})
	ok(err == nil && strings.Contains(strings.Join(labels.LabelNames, " "), "job"), "the labels", err, labels)
	values, err := client.Values(ctx, &querypb.ValuesRequest{LabelName: "job"})
	ok(err == nil && len(values.LabelValues) == 1 && values.LabelValues[0] == "parca", "the values of one", err, values)
	selector := `process_cpu:cpu:nanoseconds::{job="parca"}`
	series, err := client.QueryRange(ctx, &querypb.QueryRangeRequest{Query: selector, Start: start, End: end, Limit: 100})
	var sum int64
	if err == nil && len(series.Series) == 1 {
		for _, s := range series.Series[0].Samples {
			sum += s.Value
		}
	}
	ok(err == nil && sum == want && series.Series[0].Labelset != nil, "a series has the sum of cairn query", err, sum, want)
	merge := func(report querypb.QueryRequest_ReportType) *querypb.QueryRequest {
		return &querypb.QueryRequest{Mode: querypb.QueryRequest_MODE_MERGE, ReportType: report,
			Options: &querypb.QueryRequest_Merge{Merge: &querypb.MergeProfile{Query: selector, Start: start, End: end}}}
	}
	flame, err := client.Query(ctx, merge(querypb.QueryRequest_REPORT_TYPE_FLAMEGRAPH_TABLE))
	var inTree int64
	if err == nil && flame.GetFlamegraph() != nil {
		for _, n := range flame.GetFlamegraph().Root.Children {
			inTree += sumFlat(n, 1)
		}
		ok(flame.GetFlamegraph().Root.Cumulative == want && inTree == want && flame.Total == want && flame.GetFlamegraph().Unit == "nanoseconds",
			"and so has the flame graph", flame)
	} else {
		ok(false, "and so has the flame graph", err)
	}
	top, err := client.Query(ctx, merge(querypb.QueryRequest_REPORT_TYPE_TOP))
	var flat int64
	if err == nil {
		for _, n := range top.GetTop().GetList() {
			flat += n.Flat
		}
	}
	ok(err == nil && flat == want, "and the top table", err, flat)
	pprof, err := client.Query(ctx, merge(querypb.QueryRequest_REPORT_TYPE_PPROF))
	ok(err == nil && len(pprof.GetPprof()) > 20 && pprof.GetPprof()[0] == 0x1f, "a pprof file", err)
	diff, err := client.Query(ctx, &querypb.QueryRequest{Mode: querypb.QueryRequest_MODE_DIFF, ReportType: querypb.QueryRequest_REPORT_TYPE_FLAMEGRAPH_TABLE,
		Options: &querypb.QueryRequest_Diff{Diff: &querypb.DiffProfile{
			A: &querypb.ProfileDiffSelection{Mode: querypb.ProfileDiffSelection_MODE_MERGE, Options: &querypb.ProfileDiffSelection_Merge{
				Merge: &querypb.MergeProfile{Query: `process_cpu:cpu:nanoseconds::{job="none"}`, Start: start, End: end}}},
			B: &querypb.ProfileDiffSelection{Mode: querypb.ProfileDiffSelection_MODE_MERGE, Options: &querypb.ProfileDiffSelection_Merge{
				Merge: &querypb.MergeProfile{Query: selector, Start: start, End: end}}}}}})
	ok(err == nil && diff.GetFlamegraph().GetRoot().GetDiff() == want, "a diff with nothing is all", err, diff)
	_, err = client.Query(ctx, merge(querypb.QueryRequest_REPORT_TYPE_CALLGRAPH))
	ok(status.Code(err) == codes.Unimplemented, "a call graph is unimplemented", err)
	_, err = client.Query(ctx, &querypb.QueryRequest{Mode: querypb.QueryRequest_MODE_MERGE,
		Options: &querypb.QueryRequest_Merge{Merge: &querypb.MergeProfile{Query: `{job="parca"}`}}})
	ok(status.Code(err) == codes.InvalidArgument, "a query without a type is refused", err)

	var webFlame querypb.QueryResponse
	err = web(url, "Query", merge(querypb.QueryRequest_REPORT_TYPE_FLAMEGRAPH_ARROW), &webFlame)
	if flame != nil {
		ok(err == nil && proto.Equal(webFlame.GetFlamegraph(), flame.GetFlamegraph()), "Grafana's query over gRPC-Web has the same flame graph", err)
	}
	var webTypes querypb.ProfileTypesResponse
	err = web(url, "ProfileTypes", &querypb.ProfileTypesRequest{}, &webTypes)
	ok(err == nil && proto.Equal(&webTypes, types), "and its health check the same types", err)
	err = web(url, "Query", &querypb.QueryRequest{}, &webFlame)
	ok(err != nil && strings.Contains(err.Error(), "grpc-status: 3"), "an error is in the trailers", err)
}

func main() {
	conn, err := grpc.Dial(os.Args[2], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	want, _ := strconv.ParseInt(os.Args[6], 10, 64)
	upload(conn, os.Args[3], os.Args[4])
	write(conn, os.Args[5])
	query(conn, os.Args[1], want)
	if failed {
		os.Exit(1)
	}
}
