// SPDX-License-Identifier: Apache-2.0

// Push sends profiles and debuginfo to a service with the clients that Pyroscope generates: push.v1 and
// debuginfo.v1alpha1 over Connect, in protobuf and JSON, plain and gzip'd. It prints one TAP-like line for each check
// and exits with 1 if one fails.
//
//	push URL PPROF-FILE ELF-FILE BUILD-ID
package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"

	"connectrpc.com/connect"
	debuginfov1 "github.com/grafana/pyroscope/api/gen/proto/go/debuginfo/v1alpha1"
	"github.com/grafana/pyroscope/api/gen/proto/go/debuginfo/v1alpha1/debuginfov1alpha1connect"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
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

func request(service string, raw []byte) *connect.Request[pushv1.PushRequest] {
	return connect.NewRequest(&pushv1.PushRequest{Series: []*pushv1.RawProfileSeries{{
		Labels:  []*typesv1.LabelPair{{Name: "__name__", Value: "process_cpu"}, {Name: "service_name", Value: service}},
		Samples: []*pushv1.RawSample{{RawProfile: raw, ID: service}},
	}}})
}

func main() {
	url, ctx := os.Args[1], context.Background()
	raw, err := os.ReadFile(os.Args[2])
	check(err == nil, "the profile is read", err)
	kinds := []struct {
		name    string
		options []connect.ClientOption
	}{
		{"proto", nil},
		{"json", []connect.ClientOption{connect.WithProtoJSON()}},
		{"proto-gzip", []connect.ClientOption{connect.WithSendGzip()}},
		{"json-gzip", []connect.ClientOption{connect.WithProtoJSON(), connect.WithSendGzip()}},
	}
	for _, kind := range kinds {
		client := pushv1connect.NewPusherServiceClient(http.DefaultClient, url, kind.options...)
		_, err = client.Push(ctx, request(kind.name, raw))
		check(err == nil, kind.name+": a push is a success", err)
		_, err = client.Push(ctx, request(kind.name, []byte("no profile")))
		check(connect.CodeOf(err) == connect.CodeInvalidArgument, kind.name+": bad data is invalid_argument, which is not retried", err)
	}
	large := bytes.Repeat([]byte{1}, 70<<20)
	_, err = pushv1connect.NewPusherServiceClient(http.DefaultClient, url).Push(ctx, request("large", large))
	check(connect.CodeOf(err) == connect.CodeInvalidArgument, "a request over the limit is not retried", err)

	for _, kind := range kinds {
		upload(ctx, url, kind.name, os.Args[3], os.Args[4], kind.options)
	}
	if failed {
		os.Exit(1)
	}
}

func upload(ctx context.Context, url, kind, path, id string, options []connect.ClientOption) {
	client := debuginfov1alpha1connect.NewDebuginfoServiceClient(http.DefaultClient, url, options...)
	should, err := client.ShouldInitiateUpload(ctx, connect.NewRequest(&debuginfov1.ShouldInitiateUploadRequest{
		File: &debuginfov1.FileMetadata{GnuBuildId: id, Name: "program"}}))
	check(err == nil, kind+": ShouldInitiateUpload", err)
	if err == nil && should.Msg.ShouldInitiateUpload {
		file, err := os.ReadFile(path)
		check(err == nil, "the file is read", err)
		answer, err := http.Post(url+"/debuginfo.v1alpha1.DebuginfoService/Upload/"+id, "application/octet-stream", bytes.NewReader(file))
		check(err == nil && answer.StatusCode == 200, kind+": Upload", err)
	}
	_, err = client.UploadFinished(ctx, connect.NewRequest(&debuginfov1.UploadFinishedRequest{GnuBuildId: id}))
	check(err == nil, kind+": UploadFinished", err)
	_, err = client.UploadFinished(ctx, connect.NewRequest(&debuginfov1.UploadFinishedRequest{GnuBuildId: "00" + id[2:]}))
	check(connect.CodeOf(err) == connect.CodeNotFound, kind+": UploadFinished of an unknown file is not_found", err)
}
