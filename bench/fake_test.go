package main

import (
	"vaultd/internal/test/kit"

	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"vaultd/internal/archive"
)

// standIn starts the stand-in in a process of its own.
func standIn(t *testing.T, o fakeOptions) *fake {
	t.Helper()
	f, err := quickBench(t).startFake(t.Context(), t.TempDir(), o)
	must(t, err)
	t.Cleanup(func() { must(t, f.Stop()) })
	return f
}

// stats asks for the figures once nothing is under way.
func (f *fake) counted(t *testing.T) fakeStats {
	t.Helper()
	s, err := f.Stats(t.Context())
	must(t, err)
	return s
}

func parcel(t *testing.T, content string) archive.Package {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.zip")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return archive.Package{Path: path, Size: int64(len(content)), SHA256: archive.Sum([]byte(content)), MD5: md5.Sum([]byte(content))}
}

// send puts bytes to an address, with the length and digest of a ZIP that may be another.
func put(t *testing.T, f *fake, address, body, digest string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(body))
	must(t, err)
	req.Header.Set("Content-MD5", digest)
	resp, err := f.client.Do(req)
	must(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode
}

func digestOf(body string) string {
	sum := md5.Sum([]byte(body))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func TestFake_ServesVaultdsClient(t *testing.T) {
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", tls), func(t *testing.T) {
			disk := t.TempDir()
			f := standIn(t, fakeOptions{TLS: tls, Disk: disk, Verify: true})
			zips := []archive.Package{parcel(t, "one"), parcel(t, "two")}
			grants, err := f.registerPackages(t.Context(), zips)
			must(t, err)
			put, err := ownClient(f.URL, f.CA)
			must(t, err)
			must(t, sendAll(t.Context(), grants, put))
			client, err := bareClient(f.URL, f.CA)
			must(t, err)
			r, err := client.Status(t.Context(), benchVault, grants[0].ticket.Remote)
			must(t, err)
			list, err := client.StatusList(t.Context(), benchVault)
			must(t, err)
			kit.Check(t, r.Status == archive.Successful && len(list) == 2 && list[0].Status == archive.Successful,
				"status %v, list %+v", r.Status, list)
			kept, err := os.ReadFile(filepath.Join(disk, string(grants[1].ticket.Remote)+".zip"))
			kit.Check(t, err == nil && string(kept) == "two", "kept %q: %v", kept, err)
			want := fakeStats{Posts: 1, BatchCalls: 1, Registered: 2, Puts: 2, Stored: 2, Bytes: 6, StatusAsked: 1, ListsAsked: 1, Archived: 2}
			got := f.counted(t)
			if got.Rush = 0; got != want { // that one depends on the time
				t.Errorf("counted %+v instead of %+v", got, want)
			}
		})
	}
}

// A filled ledger is used again by later runs, each with a stand-in of the same seed. One that gave a number a second time
// would be taken for a service whose answers are crossed, and rightly sent nothing.
func TestFake_GivesNoNumberTwice(t *testing.T) {
	given := map[archive.RemoteID]bool{}
	for range 2 {
		grants, err := standIn(t, fakeOptions{Seed: 1}).registerPackages(t.Context(), []archive.Package{parcel(t, "one"), parcel(t, "two")})
		must(t, err)
		for _, g := range grants {
			given[g.ticket.Remote] = true
		}
	}
	kit.Check(t, len(given) == 4, "%d numbers for four documents", len(given))
}

func TestFake_RefusesAWrongSignature(t *testing.T) {
	f := standIn(t, fakeOptions{})
	grants, err := f.registerPackages(t.Context(), []archive.Package{parcel(t, "one"), parcel(t, "two")})
	must(t, err)
	first, second := string(grants[0].ticket.URL), string(grants[1].ticket.URL)
	path, query, _ := strings.Cut(first, "?")
	for name, address := range map[string]string{
		"none":        path,
		"another's":   path + second[strings.Index(second, "?"):],
		"longer life": path + "?" + strings.Replace(query, "X-Amz-Expires=900", "X-Amz-Expires=901", 1),
	} {
		if code := put(t, f, address, "one", digestOf("one")); code != http.StatusForbidden {
			t.Errorf("%s: %d, want code = http.StatusForbidden", name, code)
		}
	}
	s := f.counted(t)
	kit.Check(t, s.BadSignatures == 3 && s.Stored == 0, "counted %+v", s)
	kit.Want(t, "the right one", put(t, f, first, "one", digestOf("one")), http.StatusOK)
}

func TestFake_RefusesWhatIsOver(t *testing.T) {
	s := signer{access: "a", secret: "b"}
	now := time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC)
	req, err := http.NewRequest(http.MethodPut, s.presign("https://store.example/packages/1.zip", now, time.Minute), nil)
	must(t, err)
	if err := s.verify(req, now.Add(time.Minute)); err != nil {
		t.Errorf("in time: %v", err)
	}
	kit.Fails(t, "too late", s.verify(req, now.Add(time.Minute+time.Second)), errExpired)
	f := standIn(t, fakeOptions{Faults: "batch:expired:1"})
	grants, err := f.registerPackages(t.Context(), []archive.Package{parcel(t, "one")})
	must(t, err)
	if code := put(t, f, string(grants[0].ticket.URL), "one", ""); code != http.StatusForbidden || f.counted(t).Expired != 1 {
		t.Errorf("%d, counted %+v", code, f.counted(t))
	}
}

// G12: what ends early or is not what it says is never taken for stored.
func TestFake_G12_CountsShortAndWrongBodies(t *testing.T) {
	f := standIn(t, fakeOptions{Verify: true})
	grants, err := f.registerPackages(t.Context(), []archive.Package{parcel(t, "one")})
	must(t, err)
	address := string(grants[0].ticket.URL)
	host, rest, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	answer := putShort(t, host, rest, "")
	kit.Holds(t, "a short body", answer, "400")
	kit.Want(t, "another digest", put(t, f, address, "one", digestOf("two")), http.StatusBadRequest)
	s := f.counted(t)
	held, err := f.Objects(t.Context())
	kit.Check(t, s.ShortBodies == 1 && s.BadDigests == 1 && s.Stored == 0 && len(held) == 0 && err == nil,
		"counted %+v, holds %v: %v", s, held, err)
}

// putShort sends five of a hundred bytes, with further header lines, and returns the first line of the answer.
func putShort(t *testing.T, host, path, header string) string {
	t.Helper()
	conn, err := net.Dial("tcp", host)
	must(t, err)
	fmt.Fprintf(conn, "PUT /%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n%s\r\nshort", path, host, header)
	must(t, conn.(*net.TCPConn).CloseWrite())
	answer, err := bufio.NewReader(conn).ReadString('\n')
	must(t, errors.Join(err, conn.Close()))
	return answer
}

// G12: a lax store takes what ended early for whole, unless Content-MD5 tells it what to expect. What the ledger calls
// stored is only worth something against such a one.
func TestFake_G12_LaxTakesShortBodies(t *testing.T) {
	f := standIn(t, fakeOptions{Verify: true, Lax: true})
	grants, err := f.registerPackages(t.Context(), []archive.Package{parcel(t, "one")})
	must(t, err)
	host, rest, _ := strings.Cut(strings.TrimPrefix(string(grants[0].ticket.URL), "http://"), "/")
	kit.Holds(t, "a short body with its digest", putShort(t, host, rest, "Content-MD5: "+digestOf("one")+"\r\n"), "400")
	putShort(t, host, rest, "")
	held, err := f.Objects(t.Context())
	must(t, err)
	s := f.counted(t)
	kit.Check(t, s.ShortBodies == 1 && s.TakenShort == 1 && len(held) == 1 && held[0].Size == 5, "counted %+v, holds %v", s, held)
}

func TestFake_CountsDuplicates(t *testing.T) {
	f := standIn(t, fakeOptions{Verify: true})
	client, err := bareClient(f.URL, f.CA)
	must(t, err)
	frozen := []archive.RegisterRequest{archive.RegisterRequest{ID: archive.ID{1}, Metadata: metadata(1)}}
	for _, body := range []string{"one", "one", "other"} {
		r, err := client.Register(t.Context(), benchVault, frozen)
		must(t, err)
		address := string(r.Tickets[frozen[0].ID].URL)
		for range 2 {
			code := put(t, f, address, body, digestOf(body))
			kit.Need(t, code == http.StatusOK, "code = %v, want code = http.StatusOK", code)
		}
		put(t, f, address, body+"!", digestOf(body+"!"))
	}
	clients, err := f.Clients(t.Context())
	kit.Check(t, err == nil && len(clients) == 1 && clients[archive.ID{1}.String()] == 3, "registered %v: %v", clients, err)
	s := f.counted(t)
	kit.Check(t, s.Registered == 3 && s.Reregistered == 2 && s.Stored == 9 && s.Again == 3 && s.Different == 3 && s.Duplicates == 1,
		"counted %+v", s)
}

// A busy one knows the documents of filled ledgers by the numbers that they have there, and nothing else.
func TestFake_BusyWithFilledLedgers(t *testing.T) {
	f := standIn(t, fakeOptions{Busy: true})
	client, err := bareClient(f.URL, f.CA)
	must(t, err)
	id := uuid.New()
	r, err := client.Status(t.Context(), benchVault, archive.RemoteID(twin(id).String()))
	kit.Check(t, err == nil && r.Status == archive.InProgress && r.ID == archive.ID(id),
		"%+v: %v, want no error, r.Status = archive.InProgress, r.ID = %v", r, err, archive.ID(id))
	if r, err := client.Status(t.Context(), benchVault, "none of ours"); err == nil {
		t.Errorf("%+v, want an error", r)
	}
}

func TestFake_Faults(t *testing.T) {
	f := standIn(t, fakeOptions{Verify: true, Faults: "store:reset-done:1,register:503:0.5", Seed: 3})
	var grants []granted
	for len(grants) == 0 {
		grants, _ = f.registerPackages(t.Context(), []archive.Package{parcel(t, "one")})
	}
	put, err := rawClient(f.URL, f.CA)
	must(t, err)
	if err := sendAll(t.Context(), grants, put); err == nil {
		t.Error("a reset was an answer")
	}
	if s := f.counted(t); s.Stored == 0 || s.Faulted == 0 { // it was carried out before
		t.Errorf("counted %+v", s)
	}
	for _, text := range []string{"store:503", "store:99:0.1", "nobody:503:0.1", "store:expired:1", "batch:503:1", "store:503:often"} {
		_, err := parseFaults(text)
		kit.Check(t, err != nil, "%q was taken", text)
	}
}

// The process ends with the context, and says so on the command line when it is told nonsense.
func TestFake_CommandLine(t *testing.T) {
	var said bytes.Buffer
	for _, args := range [][]string{nil, {"nobody"}, {"fake", "-nothing"}, {"gen", "S"}, {"gen", "X", t.TempDir()}, {"fill", "many", t.TempDir()}, {"all", "-only", "G99"}} {
		if code := run(t.Context(), args, io.Discard, &said); code != 2 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err := serveFake(ctx, t.TempDir(), fakeOptions{Listen: "127.0.0.1:0"}, io.Discard)
	kit.Check(t, err == nil, "error: %v", err)
}

// The index of a filled ledger has its documents in their order, each once and as they were sent.
func TestFake_IndexOfAFilledLedger(t *testing.T) {
	f := standIn(t, fakeOptions{Index: 2500})
	client, err := bareClient(f.URL, f.CA)
	must(t, err)
	for range 2 { // a second reader begins anew
		lives, last := newLives(indexBegin), time.Time{}
		whole, _, err := client.ReadIndex(t.Context(), benchVault, func(recs []archive.IndexRecord) error {
			for _, rec := range recs {
				l := lives.next()
				if rec.Remote != l.remote || !bytes.Equal(rec.Document.Metadata(), l.document.Metadata) || !rec.ArchivedAt.After(last) {
					return fmt.Errorf("%+v instead of %s", rec, l.document.Metadata)
				}
				last = rec.ArchivedAt
			}
			return nil
		})
		kit.Check(t, err == nil && whole.Complete && whole.Read == 2500,
			"%+v: %v, want no error, whole.Complete, whole.Read = 2500", whole, err)
	}
}
