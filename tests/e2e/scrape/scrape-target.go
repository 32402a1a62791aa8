// SPDX-License-Identifier: Apache-2.0

// A program with net/http/pprof, for scrape.t: a known amount of work on request, and responses of hostile targets.
//
//	scrape-target ADDRESS PORT-FILE
//
// Every allocation, contention and blocking event is counted, so that profiles are exact.
package main

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"
)

var kept [][]byte

//go:noinline
func allocateBlocks(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 1<<20))
	}
}

// The owner waits long enough for the other goroutine to be blocked.
//
//go:noinline
func contendLocks(n int) {
	for i := 0; i < n; i++ {
		var lock sync.Mutex
		var waiting, done sync.WaitGroup
		waiting.Add(1)
		done.Add(1)
		lock.Lock()
		go func() {
			waiting.Done()
			lock.Lock()
			lock.Unlock()
			done.Done()
		}()
		waiting.Wait()
		time.Sleep(20 * time.Millisecond)
		lock.Unlock()
		done.Wait()
	}
}

// Uses a fifth of a processor, forever.
//
//go:noinline
func burnProcessor() {
	for sum := 0; ; {
		for until := time.Now().Add(20 * time.Millisecond); time.Now().Before(until); {
			for i := 0; i < 100000; i++ {
				sum += i
			}
		}
		time.Sleep(80 * time.Millisecond)
	}
}

// The fields of a message in pprof's profile.proto.
type message []byte

func (m *message) number(field, value uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, field<<3), value)
}

func (m *message) bytes(field uint64, value []byte) {
	*m = append(binary.AppendUvarint(binary.AppendUvarint(*m, field<<3|2), uint64(len(value))), value...)
}

// A profile of two samples: one of the function good, and one whose names exceed the size of a batch once each invalid
// UTF-8 byte in them is replaced by three bytes.
func largeProfile() []byte {
	const frames, nameBytes = 1200, 20000
	var profile, valueType, sample, good message
	texts := [][]byte{{}, []byte("samples"), []byte("count"), []byte("good")}
	valueType.number(1, 1)
	valueType.number(2, 2)
	profile.bytes(1, valueType)
	for i := uint64(1); i <= frames; i++ {
		var line, location, function message
		sample.number(1, i)
		line.number(1, i)
		location.number(1, i)
		location.bytes(4, line)
		profile.bytes(4, location)
		function.number(1, i)
		if i == 1 {
			function.number(2, 3)
		} else {
			function.number(2, uint64(len(texts)))
			texts = append(texts, append(bytes.Repeat([]byte{0xff}, nameBytes), fmt.Sprint(i)...))
		}
		profile.bytes(5, function)
	}
	sample.number(2, 1)
	profile.bytes(2, sample)
	good.number(1, 1)
	good.number(2, 5)
	profile.bytes(2, good)
	for _, text := range texts {
		profile.bytes(6, text)
	}
	return profile
}

// A profile with the stack main, allocate, malloc.
func droppedProfile(drop string) []byte {
	var profile, valueType, sample message
	valueType.number(1, 1)
	valueType.number(2, 2)
	profile.bytes(1, valueType)
	for i := uint64(1); i <= 3; i++ {
		var line, location, function message
		sample.number(1, 4-i)
		line.number(1, i)
		location.number(1, i)
		location.bytes(4, line)
		profile.bytes(4, location)
		function.number(1, i)
		function.number(2, 2+i)
		profile.bytes(5, function)
	}
	sample.number(2, 7)
	profile.bytes(2, sample)
	for _, text := range []string{"", "samples", "count", "main", "allocate", "malloc", drop} {
		profile.bytes(6, []byte(text))
	}
	profile.number(7, 6)
	return profile
}

func number(r *http.Request) int {
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	return n
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)

	http.HandleFunc("/load/allocate", func(w http.ResponseWriter, r *http.Request) {
		allocateBlocks(number(r))
		kept = nil
		for i := 0; i < 3; i++ { // a heap profile is of the last garbage collection
			runtime.GC()
		}
	})
	http.HandleFunc("/load/contend", func(w http.ResponseWriter, r *http.Request) { contendLocks(number(r)) })
	http.HandleFunc("/load/burn", func(w http.ResponseWriter, r *http.Request) {
		labels := pprof.Labels("job", "evil", "service.name", "evil", "endpoint", "hot")
		go pprof.Do(context.Background(), labels, func(context.Context) { burnProcessor() })
	})
	http.HandleFunc("/fixed", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, os.Args[2]+".fixed") })

	// Endpoints that require credentials.
	http.HandleFunc("/secret/", func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.Header.Get("Authorization"), os.Getenv("TARGET_AUTHORIZATION"); got != want {
			http.Error(w, "wrong credentials", http.StatusUnauthorized)
			return
		}
		pprof.Lookup("goroutine").WriteTo(w, 0)
	})

	// Hostile endpoints.
	http.HandleFunc("/huge", func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 1<<20)
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	http.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write([]byte{31}); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	})
	http.HandleFunc("/hang", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	http.HandleFunc("/html", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><body>please sign in</body></html>")
	})
	http.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/debug/pprof/goroutine", http.StatusFound)
	})
	http.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	http.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	})
	http.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) {})
	http.HandleFunc("/bomb", func(w http.ResponseWriter, r *http.Request) {
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		block := make([]byte, 1<<20)
		for i := 0; i < 100; i++ {
			packed.Write(block)
		}
		packed.Close()
	})
	http.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		packed.Write(largeProfile())
		packed.Close()
	})
	http.HandleFunc("/encoded", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		w.Write([]byte("\x0b\x02\x80abc\x03"))
	})
	http.HandleFunc("/zlib", func(w http.ResponseWriter, r *http.Request) {
		packed := zlib.NewWriter(w)
		packed.Write(droppedProfile(""))
		packed.Close()
	})
	http.HandleFunc("/twice", func(w http.ResponseWriter, r *http.Request) {
		outer := gzip.NewWriter(w)
		inner := gzip.NewWriter(outer)
		if r.Header.Get("Accept-Encoding") == "identity" {
			w.Header().Set("Content-Encoding", "gzip")
		}
		inner.Write(droppedProfile(""))
		inner.Close()
		outer.Close()
	})
	http.HandleFunc("/dropped", func(w http.ResponseWriter, r *http.Request) { w.Write(droppedProfile("malloc")) })
	http.HandleFunc("/undropped", func(w http.ResponseWriter, r *http.Request) { w.Write(droppedProfile("malloc|(")) })
	http.HandleFunc("/error", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "cpu profiling already in use\x1b[31m", http.StatusInternalServerError)
	})
	http.HandleFunc("/longerror", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		w.Write(make([]byte, 1<<20))
	})
	http.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
			c.Close()
		}
	})

	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	os.WriteFile(os.Args[2]+".new", []byte(port), 0o644)
	os.Rename(os.Args[2]+".new", os.Args[2])
	if cert := os.Getenv("TARGET_CERT"); cert != "" { // clients need a certificate signed by it
		pem, _ := os.ReadFile(cert)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		s := http.Server{TLSConfig: &tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}}
		fmt.Fprintln(os.Stderr, s.ServeTLS(l, cert, os.Getenv("TARGET_KEY")))
	}
	fmt.Fprintln(os.Stderr, http.Serve(l, nil))
}
