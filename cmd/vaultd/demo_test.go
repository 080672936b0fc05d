package main_test

import (
	"bufio"
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/test/kit"
	"vaultd/testdata"
)

// The demo drops every sample there is, and each ends as it was made to end: a clerk's mistake, a repetition, a refusal of the archive and a
// rejection after the delivery are among them. What was booked is compared, and one invoice was never dropped.
func TestDemo_EachSampleEndsAsItWasMadeTo(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	dir := filepath.Join(t.TempDir(), "demo")
	if code := program.Run(t.Context(), []string{"demo", "--dir", dir}, strings.NewReader(""), &out, &errs, noEnv); code != exitDone {
		t.Fatalf("exit %d: %s%s", code, &out, &errs)
	}
	kit.Lacks(t, "the demo's times", out.String(), " UTC")
	sums, _, _ := runHere("--config", filepath.Join(dir, "config.yaml"), "books", "--from", "2026-10-01", "--to", "2026-10-31")
	kit.Holds(t, "books", sums, "EUR")
	huge := regexp.MustCompile(`\d,\d{3},\d{3}`).FindString(sums)
	kit.Check(t, huge == "", "sum = %s, want one of an invoice:\n%s", huge, sums)
	states := map[string]string{}
	listed, _, code := runHere("--config", filepath.Join(dir, "config.yaml"), "list", "--json")
	for line := range strings.Lines(listed) {
		var row struct{ Drop, Folder, State string }
		err := json.Unmarshal([]byte(line), &row)
		kit.Need(t, err == nil, "exit %d, %v: %s", code, err, line)
		states[row.Drop+"/"+row.Folder] = row.State
	}
	want := map[string]string{
		"ap-scans/scan1 nochmal.pdf": "duplicate", "acme-in/Otto 19 Kopie": "duplicate", "acme-in/Schulz 3": "rejected", "acme-in/Kern 6": "quarantined", "acme-out/GS 12": "rejected",
		"acme-out/RE 5001": "delivered", "acme-out/RE 5002": "delivered",
	}
	for files, pattern := range map[*embed.FS]string{&testdata.Drops: "*/*", &testdata.Network: "acme-out/*"} {
		names, err := fs.Glob(files, pattern)
		kit.Need(t, err == nil && len(names) >= 3, "names = %v, err = %v, want no error, len(names) >= 3", names, err)
		for _, name := range names {
			kit.Want(t, name, states[name], cmp.Or(want[name], "archived"))
		}
	}
	said := regexp.MustCompile(`[0-9.,]+ [kM]?B`).ReplaceAllString(out.String(), "SIZE")
	kit.Holds(t, "said", said,
		"BALANCE  seen 24 = archived 13 + delivered 5 + rejected 3 + quarantined 1 + duplicate 2 + open 0  agrees",
		"NETWORK  1 delivered, 1 REJECTED AFTER DELIVERY, 1 refused before anything was sent", `"sentTo.id": a GLN has 13 digits, this has 12.`, "2 came in",
		"see _rejected/Schulz 3/_REASON.txt: documentDate not understood", "archiving refused by configuration of the vault; a person must decide",
		"BOOKED   1 Oct 2026 to 31 Oct 2026: 12 invoices, 9 archived, 3 not", "No delta covers 30 Oct 2026",
		"S-2026-118      Sommer Druck      2026-10-28  never dropped", "rejected, see Schulz 3", "quarantined, see Kern 6",
	)
}

// What the README shows of a sample is in testdata, letter by letter.
func TestSamples_AsTheReadmeShowsThem(t *testing.T) {
	const shown = "acme-in/Müller 4711"
	readme := kit.Value(os.ReadFile("../../README.md"))(t)
	meta := kit.Value(testdata.Drops.ReadFile(shown + "/metadata.json"))(t)
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(string(meta)), "\n", "\n    ")
	if text := string(readme); !strings.Contains(text, "testdata/"+shown) || !strings.Contains(text, indented) {
		t.Errorf("the README does not show testdata/%s as it is:\n%s", shown, indented)
	}
}

// standIn answers on the socket of a shelf in place of a daemon, with what
// answer writes and the exit code that it returns.
func (s *shelf) standIn(answer func(out io.Writer) (exit int)) {
	s.t.Helper()
	l := kit.Value(net.Listen("unix", filepath.Join(s.cfg.StateDir, "vaultd.sock")))(s.t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				frames := json.NewEncoder(conn)
				exit := answer(framed{frames})
				_ = frames.Encode(map[string]int{"exit": exit}) // the client tells
			}
			conn.Close()
		}
	}()
	s.t.Cleanup(func() { l.Close(); <-done })
}

// framed writes each piece of output as the socket's protocol says.
type framed struct{ to *json.Encoder }

func (f framed) Write(b []byte) (int, error) {
	return len(b), f.to.Encode(map[string][]byte{"out": b})
}

// ask runs a command in real time and returns its exit code and what it wrote.
func (s *shelf) ask(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	stdout, stderr, code = runHere(append([]string{"--config", s.config}, args...)...)
	return code, stdout, stderr
}

// archiveIs lets the commands of a shelf reach an archive that answers with h.
func (s *shelf) archiveIs(h http.HandlerFunc) {
	s.t.Helper()
	srv := httptest.NewServer(h)
	s.t.Cleanup(srv.Close)
	s.edit("https://vault.example", srv.URL)
	s.edit("/etc/vaultd/secret", secretFile(s.t, "demo\n", 0o600))
}

// reach runs a command in real time with the ledger closed: what waits for the network
// cannot wait in a bubble.
func (s *shelf) reach(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	kit.Must(s.t, s.ledger.Close())
	stdout, stderr, code = runHere(append([]string{"--config", s.config}, args...)...)
	s.ledger.Open()
	checkOutput(s.t, nil, []byte(stderr))
	return stdout, stderr, code
}
