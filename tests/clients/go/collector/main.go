// SPDX-License-Identifier: Apache-2.0

// Collector sends OTLP profiles with the HTTP client of the OpenTelemetry Collector, once for each compression that its
// exporters support.
//
//	collector URL OTLP-FILE
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/confighttp"
)

func send(kind configcompression.Type, url string, body []byte, batch int) error {
	config := confighttp.NewDefaultClientConfig()
	config.Compression = kind
	client, err := config.ToClient(context.Background(), nil, componenttest.NewNopTelemetrySettings())
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, url+"/v1development/profiles", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("X-Cairn-Batch", fmt.Sprintf("%032x", batch))
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %q", answer.StatusCode, text)
	}
	return nil
}

func main() {
	body, err := os.ReadFile(os.Args[2])
	failed := err != nil
	for i, kind := range []configcompression.Type{"none", "gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4"} {
		if err := send(kind, os.Args[1], body, i+1); err != nil {
			fmt.Printf("not ok - compression %s: %v\n", kind, err)
			failed = true
		} else {
			fmt.Printf("ok - compression %s\n", kind)
		}
	}
	if failed {
		os.Exit(1)
	}
}
