package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/drop"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// diagnosis is what doctor says with --json.
type diagnosis struct {
	Good, Running bool
	Tries         []struct{ What, Name, Result, Text, Do string }
}

const tryFail = "FAIL"

// diagnose runs doctor and gives what it tried.
func (s *site) diagnose(want int) diagnosis {
	s.t.Helper()
	out, code := s.vaultd("doctor", "--json")
	var d diagnosis
	err := json.Unmarshal([]byte(out), &d)
	kit.Need(s.t, err == nil && code == want && d.Good == (want == 0), "exit %d, want %d, %v: %s", code, want, err, out)
	return d
}

// found gives the results of one thing, "OK" or "FAIL: text".
func (d diagnosis) found(what, name string) string {
	var all []string
	for _, t := range d.Tries {
		if t.What == what && (name == "" || t.Name == name) {
			all = append(all, t.Result+" "+t.Text+" | "+t.Do)
		}
	}
	return strings.Join(all, "\n")
}

// left names what lies in the drop folders and in their .vaultd.
func (s *site) left() string {
	var all []string
	for _, name := range []string{"acme", "beta"} {
		for _, glob := range []string{"*", ".*", ".vaultd/*", ".vaultd/.*"} {
			names := kit.Value(filepath.Glob(filepath.Join(s.dir, name, glob)))(s.t)
			all = append(all, names...)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// Where all is well doctor says so, by the running vaultd or without one, sends nothing and leaves nothing behind.
func TestDoctor_AllIsWell(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	before := s.left()
	d := s.diagnose(exitDone)
	kit.Check(t, !d.Running && strings.HasPrefix(d.found("daemon", ""), "WARN vaultd is not running"),
		`%+v, want not d.Running, d.found("daemon", "") that begins with "WARN vaultd is not running"`, d)
	kit.Want(t, "it left something behind", s.left(), before)
	s.begin()
	d = s.diagnose(exitDone)
	for _, want := range [][2]string{{"daemon", ""}, {"configuration", ""}, {"ledger", ""}, {"binding", ""}, {"disk", ""}, {"service", ""},
		{"clock", ""}, {"credentials", "service.auth"}, {"vault", "ACME"}, {"vault", "BETA"}, {"drop", "acme"}, {"drop", "beta"}} {
		got := d.found(want[0], want[1])
		kit.Check(t, strings.HasPrefix(got, "OK "), `%v: %q, want got that begins with "OK "`, want, got)
	}
	if !d.Running || strings.Contains(s.left(), "doctor-") { // vaultd itself makes files there meanwhile
		t.Errorf("%+v\n%s\nwant d.Running, s.left() without \"doctor-\"", d, s.left())
	}
	if out, code := s.vaultd("doctor"); code != 0 || !strings.Contains(out, "OK    drop acme: a test file was written") || strings.Contains(out, "FAIL") {
		t.Errorf("exit %d: %s", code, out)
	}
	n := emu.CountCalls("register") + emu.CountCalls("upload")
	kit.Check(t, n <= 0, "%d documents were sent", n)
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
}

// I26: a host that took a package without Content-MD5 alone is named by the
// running vaultd, from its first success on.
func TestDoctor_I26_StoreWithoutContentMD5(t *testing.T) {
	_, s := served(t, emulator.Config{Readings: emulator.Readings{ContentMD5: "unsigned"}}, fast)
	s.begin()
	kit.Want(t, "stores before the first upload", s.diagnose(exitDone).found("store", ""), "")
	s.add("acme", "A", 1)
	kit.Await(t, "the invoice to be archived", s.inState("archived", 1))
	d := s.diagnose(exitDone)
	host := strings.TrimPrefix(s.service, "http://")
	kit.Holds(t, "doctor on the store "+host, d.found("store", host), "OK takes packages without Content-MD5 alone")
}

// Each fault is named as what it is, with its exit code and what to do.
func TestDoctor_FaultsByName(t *testing.T) {
	t.Parallel()
	behind := func() time.Time { return time.Now().Add(-59*time.Minute - 30*time.Second) }
	type row struct {
		cfg        emulator.Config
		spoil      func(s *site, address string)
		code       int
		what, want string
	}
	kit.Rows(t, map[string]row{
		"WrongPassword": {spoil: func(s *site, _ string) { s.write("secret", "wrong\n") }, code: exitRights, what: "credentials", want: "FAIL"},
		"NoSecret": {spoil: func(s *site, _ string) {
			kit.Must(s.t, os.Remove(filepath.Join(s.dir, "secret")))
		}, code: exitFailed, what: "configuration", want: "FAIL"},
		"UnknownVault": {spoil: func(s *site, _ string) { s.edit("vault: ACME", "vault: ACNE") }, code: exitDone, what: "vault", want: "WARN the archive does not list it; it lists 2"},
		"OldPasswordFile": {spoil: func(s *site, _ string) {
			s.write("users", "CANARY-one-for-everybody\n")
			s.edit(`http: {listen: ""}`, `http: {listen: "", access: {users_file: `+s.dir+`/users}}`)
		}, code: exitFailed, what: "configuration", want: "FAIL holds one password; it now holds users, one a line: NAME:BCRYPT:RIGHTS"},
		"ClockOff": {cfg: emulator.Config{Clock: behind}, code: exitDone, what: "clock", want: "WARN this machine is 59 min ahead"},
		"Away":     {spoil: func(s *site, address string) { s.edit(address, "http://127.0.0.1:1"); s.rebind() }, code: exitUnavailable, what: "service", want: "FAIL reach 127.0.0.1:1"},
		"WrongBinding": {spoil: func(s *site, address string) { s.edit(address, strings.Replace(address, "127.0.0.1", "localhost", 1)) },
			code: exitFailed, what: "binding", want: "FAIL"},
		"NoLedger": {spoil: func(s *site, _ string) { s.away("state/ledger.db"); s.away("state/ledger.head.1") }, code: exitFailed, what: "ledger", want: "FAIL"},
		"NoDrop":   {spoil: func(s *site, _ string) { s.away("acme") }, code: exitFailed, what: "drop", want: "FAIL"},
		"UnwritableDrop": {spoil: func(s *site, _ string) { s.write("acme/.vaultd", "a file in the place of the folder") },
			code: exitFailed, what: "drop", want: "FAIL a test file cannot be written"},
		"DiskFull":     {spoil: func(s *site, _ string) { s.edit("min_free: 1MB", "min_free: 9000TB") }, code: exitFailed, what: "disk", want: "FAIL"},
		"SeveralKinds": {spoil: func(s *site, _ string) { s.write("secret", "wrong\n"); s.away("acme") }, code: exitFailed, what: "drop", want: "FAIL"},
		"NoVaultList": {cfg: emulator.Config{Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "vaults", Rate: 1, Fault: emulator.Fault{Kind: emulator.Status, Status: 404}}}}},
			code: exitDone, what: "credentials", want: "WARN"},
	}, func(t *testing.T, row row) {
		_, s := served(t, row.cfg, fast)
		if row.spoil != nil {
			row.spoil(s, s.service)
		}
		d := s.diagnose(row.code)
		got := d.found(row.what, "")
		kit.Holds(t, fmt.Sprintf("%s: %q", row.what, got), "\n"+got, "\n"+row.want)
		for _, tr := range d.Tries {
			kit.Check(t, tr.Result != tryFail || tr.Text != "" && tr.Do != "",
				"it does not say what to do: %+v", tr)
			kit.Lacks(t, fmt.Sprintf("a secret: %+v", tr), tr.Text+tr.Do, "wrong\n")
		}
	})
}

// write puts a file into the site's folder.
func (s *site) write(name, text string) {
	s.t.Helper()
	kit.Must(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// away moves something of the site aside.
func (s *site) away(name string) {
	s.t.Helper()
	kit.Must(s.t, os.Rename(filepath.Join(s.dir, name), filepath.Join(s.dir, filepath.Base(name)+"-away")))
}

// rebind makes the empty ledger anew, for the address that the configuration has now.
func (s *site) rebind() {
	s.t.Helper()
	out, code := s.vaultd("init")
	kit.Need(s.t, code == 0, "init: exit %d: %s", code, out)
}

// A certificate that has ended is named with its day, and one that ends soon is a warning.
func TestDoctor_Certificates(t *testing.T) {
	t.Parallel()
	type row struct {
		ends time.Duration
		code int
		want string
	}
	kit.Rows(t, map[string]row{
		"Ended": {-time.Hour, exitUnavailable, "FAIL it ended "},
		"Soon":  {20 * 24 * time.Hour, exitDone, "WARN it ends "},
		"Good":  {300 * 24 * time.Hour, exitDone, "OK valid until "},
	}, func(t *testing.T, row row) {
		emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "demo", Secret: "demo", Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}}})
		kit.Must(t, err)
		t.Cleanup(func() { emu.Close() })
		address, ca := serveTLS(t, emu, time.Now().Add(row.ends))
		s := newSite(t, address, fast)
		s.edit("base_url: ", "ca_file: "+ca+"\n  base_url: ")
		d := s.diagnose(row.code)
		got := d.found("certificate", "127.0.0.1")
		kit.Check(t, strings.HasPrefix(got, row.want), "%q: %+v, want got that begins with %q", got, d, row.want)
	})
}

// serveTLS serves h with a certificate of its own that ends then, and gives the address and the certificate's file.
func serveTLS(t *testing.T, h http.Handler, ends time.Time) (address, caFile string) {
	t.Helper()
	key := kit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-400 * 24 * time.Hour), NotAfter: ends, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der := kit.Value(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	srv := httptest.NewUnstartedServer(h)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.Config.ErrorLog = log.New(&bytes.Buffer{}, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	kit.Must(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return srv.URL, caFile
}

// What a test that died left is removed by the next one, and what it did not make stays.
func TestDoctor_SweepsWhatItLeft(t *testing.T) {
	dir := t.TempDir()
	kit.Must(t, os.Mkdir(filepath.Join(dir, ".vaultd"), 0o700))
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"doctor-OLD.tmp", ".doctor-OLD.tmp.tmp", "drop.json", "doctor-notes.txt"} {
		path := filepath.Join(dir, ".vaultd", name)
		kit.Must(t, os.WriteFile(path, nil, 0o600))
		kit.Must(t, os.Chtimes(path, old, old))
	}
	kit.Must(t, drop.TryWrite(dir))
	names, err := os.ReadDir(filepath.Join(dir, ".vaultd"))
	if err != nil || len(names) != 2 || names[0].Name() != "doctor-notes.txt" || names[1].Name() != "drop.json" {
		t.Errorf(`names = %v, err = %v, want no error, len(names) = 2, names[0].Name() = "doctor-notes.txt", names[1].Name() = "drop.json"`, names, err)
	}
}

// The extracts and their folder are tried for real, and each fault says what to do.
func TestDoctor_Extracts(t *testing.T) {
	t.Parallel()
	forbidden := emulator.Config{Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "extract-list", Rate: 1, Fault: emulator.Fault{Kind: emulator.Status, Status: 403}}}}}
	type row struct {
		cfg        emulator.Config
		folder     func(path string) error
		code       int
		what, want string
	}
	kit.Rows(t, map[string]row{
		"Good":      {emulator.Config{}, mkdirPrivate, exitDone, "extracts", "extracts listed: 0"},
		"Folder":    {emulator.Config{}, mkdirPrivate, exitDone, "custody", "OK "},
		"NoRight":   {forbidden, mkdirPrivate, exitFailed, "extracts", "an API user of their own"},
		"NoFolder":  {emulator.Config{}, func(string) error { return nil }, exitFailed, "custody", "no such file"},
		"NotFolder": {emulator.Config{}, func(path string) error { return os.WriteFile(path, nil, 0o600) }, exitFailed, "custody", "is no folder"},
	}, func(t *testing.T, row row) {
		_, s := served(t, row.cfg, fast)
		custody := filepath.Join(s.dir, "custody")
		kit.Must(t, row.folder(custody))
		s.edit("drops:", "extracts: {base_url: "+s.service+", custody: "+custody+", auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
		d := s.diagnose(row.code)
		found := false
		for _, tr := range d.Tries {
			if tr.What == row.what {
				found = found || strings.Contains(tr.Result+" "+tr.Text+" "+tr.Do, row.want)
			}
			kit.Check(t, tr.Result != tryFail || tr.Do != "", "it does not say what to do: %+v", tr)
		}
		kit.Check(t, found, "%+v, want found", d.Tries)
	})
}

func mkdirPrivate(path string) error { return os.Mkdir(path, 0o700) }

// networkAnswers are the faults of the two questions that doctor asks the network.
func networkAnswers(directory, notifications emulator.Fault) emulator.Config {
	var rules []emulator.Rule
	for op, fault := range map[string]emulator.Fault{"network-directory": directory, "network-notices": notifications} {
		if fault != (emulator.Fault{}) {
			rules = append(rules, emulator.Rule{Op: op, Rate: 1, Fault: fault})
		}
	}
	return emulator.Config{Faults: emulator.Faults{Rules: rules}}
}

// doctor says of each of the two questions what its answer means and what to do. Where one is answered, address and credentials are right.
func TestDoctor_Network(t *testing.T) {
	t.Parallel()
	good := emulator.Fault{}
	status := func(code int) emulator.Fault { return emulator.Fault{Kind: emulator.Status, Status: code} }
	notEnabled := emulator.Fault{Kind: emulator.Coded, Code: "Error.001.0012"}
	const enable = "network.base_url and network.auth are right, because the other question was answered: ask the provider to enable this account to "
	for name, row := range map[string]struct {
		cfg                      emulator.Config
		code                     int
		directory, notifications []string // words of the result
	}{
		"Good":                       {networkAnswers(good, good), exitDone, []string{"OK ", "no line for SIREN 000000001"}, []string{"OK ", "it is empty | \n"}},
		"DirectoryRefusesTheNumber":  {networkAnswers(status(422), good), exitDone, []string{"OK ", "does not take SIREN 000000001"}, []string{"OK "}},
		"NoRightForTheDirectory":     {networkAnswers(status(403), good), exitRights, []string{"FAIL ", "403", enable + "ask the directory"}, []string{"OK "}},
		"NoDirectory":                {networkAnswers(status(404), good), exitFailed, []string{"FAIL ", "404", enable + "ask the directory"}, []string{"OK "}},
		"NoRightForNotifications":    {networkAnswers(good, status(403)), exitDone, []string{"OK "}, []string{"WARN ", "403", "none is configured", enable + "list notifications"}},
		"NotificationsNotEnabled":    {networkAnswers(good, notEnabled), exitDone, []string{"OK "}, []string{"WARN ", "Error.001.0012", enable + "list notifications"}},
		"NotificationsFail":          {networkAnswers(good, emulator.Fault{Kind: emulator.HTML}), exitDone, []string{"OK "}, []string{"WARN ", "service.proxy"}},
		"NoRightAtAll":               {networkAnswers(status(401), status(401)), exitRights, []string{"FAIL ", "401", "look at network.auth", "may ask the directory"}, []string{"FAIL ", "401", "look at network.auth", "may list notifications"}},
		"WrongPath":                  {networkAnswers(status(404), status(404)), exitFailed, []string{"FAIL ", "look at network.base_url"}, []string{"FAIL ", "look at network.base_url"}},
		"DirectoryHasALineForNobody": {emulator.Config{Network: emulator.Network{Directory: []emulator.DirectoryLine{{SIREN: "000000001"}}}}, exitDone, []string{"WARN ", "1 line for SIREN 000000001", "ask the provider"}, []string{"OK "}},
	} {
		t.Run(name, func(t *testing.T) {
			emu, s := served(t, row.cfg, fast)
			s.withNetwork(s.service)
			d := s.diagnose(row.code)
			for name, words := range map[string][]string{"directory": row.directory, "notifications": row.notifications} {
				found := d.found("network", name) + "\n"
				for _, word := range words {
					kit.Check(t, strings.Contains(found, word), "%s does not say %q: %s", name, word, found)
				}
				kit.Want(t, fmt.Sprintf("%s is told more than once: %s", name, found), strings.Count(found, "\n"), 1)
			}
			kit.Want(t, "a notification was acknowledged", emu.CountCalls("network-acknowledge"), 0)
		})
	}
	t.Run("NotificationsNeeded", func(t *testing.T) { // a drop sends documents, of which nobody would hear
		_, s := served(t, networkAnswers(good, status(403)), fast)
		s.withNetwork(s.service)
		kit.Must(t, os.Mkdir(s.dir+"/out", 0o770))
		s.edit("drops:\n", "drops:\n  - {name: out, path: "+s.dir+"/out, route: network}\n")
		if found := s.diagnose(exitRights).found("network", "notifications"); !strings.Contains(found, "FAIL ") || !strings.Contains(found, "nobody hears what became of sent documents") || !strings.Contains(found, enable+"list notifications") {
			t.Errorf(`%s, want found with "FAIL ", found with "nobody hears what became of sent documents", found with %q`, found, enable+"list notifications")
		}
	})
	t.Run("Away", func(t *testing.T) {
		_, s := served(t, emulator.Config{}, fast)
		s.withNetwork("http://" + freeAddress(t))
		kit.Holds(t, `s.diagnose(exitUnavailable).found("network", "")`,
			s.diagnose(exitUnavailable).found("network", ""), "FAIL", "network.base_url")
	})
	t.Run("OneWaits", func(t *testing.T) { // I30: it waits afterwards too
		t.Parallel()
		emu, address := serveEmulator(t, emulator.Config{})
		if _, err := emu.PublishNotice(emulator.NetworkNotice{BumID: "10d90000-0000-5000-8000-00000000000a", ResponseCode: "TechnicalAccept", ActionCode: "Delivered"}); err != nil {
			t.Fatal(err)
		}
		s := newSite(t, address, fast)
		s.withNetwork(address)
		for try := range 2 {
			if found := s.diagnose(exitDone).found("network", "notifications"); !strings.Contains(found, "it is not empty, and nothing was acknowledged") || emu.CountCalls("network-notices") != try+1 || emu.CountCalls("network-acknowledge") != 0 {
				t.Errorf("try %d: %s", try, found)
			}
		}
	})
	// Received documents are announced by a code, or by the list that they stand
	// in. doctor says where the configuration has the other way.
	for name, row := range map[string]struct {
		reading, setting string
		foreign, want    string // a pair of codes about a document of others; a word of the result
	}{
		"CodeAsConfigured":  {"code", "code", "TechnicalAccept/Delivered", "OK "},
		"TypeAsConfigured":  {"type", "type", "TechnicalAccept/Delivered", "OK "},
		"TypeUnknown":       {"code-only", "code", "", "OK "},
		"OnlyTheListHasIt":  {"type", "code", "", "1 notification stands only in the list of received documents"},
		"QuestionIsIgnored": {"code", "type", "TechnicalAccept/ReceivedForProcessing", "is not followed"},
		"QuestionIsRefused": {"code-only", "type", "", "cannot be read"},
	} {
		t.Run("Received"+name, func(t *testing.T) {
			emu, s := served(t, emulator.Config{Readings: emulator.Readings{Network: emulator.NetworkReadings{Received: row.reading}}}, fast)
			kit.Value(emu.PublishReceived(emulator.ReceivedDocument{Data: []byte(`{"externalDocumentIdentifier":{"id":"R-1"},"issueDate":"2026-10-31"}`)}))(t)
			if response, action, ok := strings.Cut(row.foreign, "/"); ok {
				kit.Value(emu.PublishNotice(emulator.NetworkNotice{BumID: "10d90000-0000-5000-8000-00000000000a", ResponseCode: response, ActionCode: action}))(t)
			}
			s.withNetwork(s.service)
			s.edit("network: {", "network: {receive_into: acme, announced_by: "+row.setting+", ")
			kit.Holds(t, "the result", s.diagnose(exitDone).found("network", "received documents"), row.want)
			kit.Want(t, "calls that acknowledge", emu.CountCalls("network-acknowledge"), 0)
		})
	}
	t.Run("SecretFileMissing", func(t *testing.T) {
		emu, s := served(t, emulator.Config{}, fast)
		s.withNetwork(s.service)
		s.edit("secret_file: "+s.dir+"/secret}}", "secret_file: "+s.dir+"/none}}")
		out, code := s.vaultd("doctor")
		if code == exitDone || strings.Count(out, "FAIL  network directory: ") != 1 || strings.Contains(out, "network notifications") || emu.CountCalls("network-notices") != 0 {
			t.Errorf("exit %d: %s", code, out)
		}
	})
}
