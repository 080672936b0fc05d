package main_test

import (
	"vaultd/internal/test/kit"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log" // only to silence a server whose failed handshakes are the point
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/emulator"
)

// toldFault is one fault of the world around vaultd, and what vaultd must say of it.
type toldFault struct {
	mounts bool                 // it needs file systems of its own
	plant  func(p *plantedSite) // ends when the fault is there; a daemon may run then
	// told says where what must be read: "log", "page" (the _STATUS.txt of acme), "readyz", "metrics", or a command with its exit code,
	// as "3 status"; "0/3" where a pause of a minute changes it. The words are regular expressions; DIR in them stands for the site's folder.
	told map[string][]string
	// cure mends it, as the words say; nil: nothing more is looked at.
	cure func(p *plantedSite)
}

// plantedSite is an installation with a fault.
type plantedSite struct {
	*site
	emu    *emulator.Server
	url    string
	daemon *process // nil: it is stopped
	pages  string   // the address of its pages; may be empty
}

// Each fault is told in words that say what to do, wherever a person looks: a person who is no programmer must be able to mend it.
func TestFaults_EachIsTold(t *testing.T) {
	t.Parallel()
	for name, row := range toldFaults {
		t.Run(name, func(t *testing.T) {
			if row.mounts {
				if !apart(t) {
					return
				}
			} else {
				t.Parallel()
			}
			p := &plantedSite{}
			p.site = &site{t: t}
			row.plant(p)
			for where, words := range row.told {
				for _, want := range words {
					p.says(where, strings.ReplaceAll(want, "DIR", regexp.QuoteMeta(p.dir)))
				}
			}
			if row.cure != nil {
				row.cure(p)
			}
		})
	}
}

// says waits until want is read at a place.
func (p *plantedSite) says(where, want string) {
	p.t.Helper()
	pattern, text := regexp.MustCompile(want), ""
	defer func() {
		if p.t.Failed() {
			p.t.Logf("%s:\n%s", where, tail(text, 6000))
		}
	}()
	look := func() bool {
		code, args, isCommand := strings.Cut(where, " ")
		switch {
		case where == "log":
			text = p.daemon.out.String()
		case where == "page":
			b, err := os.ReadFile(filepath.Join(p.dir, "acme", "_STATUS.txt"))
			text = string(b) + fmt.Sprint(err)
		case where == "readyz" || where == "livez" || where == "metrics":
			text = p.get("/" + where)
		case isCommand:
			out, exit := p.vaultd(strings.Split(args, "|")...)
			if text = out; !slices.Contains(strings.Split(code, "/"), strconv.Itoa(exit)) {
				text = fmt.Sprintf("exit %d\n%s", exit, out)
				return false
			}
		}
		return pattern.MatchString(text)
	}
	if p.daemon == nil { // nothing will change by itself
		kit.Check(p.t, look(), "%s does not say %s", where, want)
		return
	}
	kit.Await(p.t, fmt.Sprintf("%s to say %s", where, want), look)
}

func (p *plantedSite) get(path string) string {
	resp, err := http.Get("http://" + p.pages + path)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, "\n", string(b), err)
}

// at makes the installation against a service.
func (p *plantedSite) at(cfg emulator.Config) {
	p.t.Helper()
	p.emu, p.url = serveEmulator(p.t, cfg)
	p.site = newSite(p.t, p.url, fast)
}

// runs starts the daemon with one invoice in acme.
func (p *plantedSite) runs() {
	p.t.Helper()
	p.add("acme", "otto", 1)
	p.daemon = p.begin()
}

func always(op string, f emulator.Fault) emulator.Config {
	return emulator.Config{Faults: emulator.Faults{Rules: []emulator.Rule{{Op: op, Rate: 1, Fault: f}}}}
}

// secured makes the installation against a service that shows a certificate of its own.
func (p *plantedSite) secured(trusted bool, change func(*x509.Certificate)) {
	p.t.Helper()
	p.at(emulator.Config{})
	conf, file := selfMade(p.t, change)
	srv := httptest.NewUnstartedServer(p.emu)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = conf
	srv.StartTLS()
	p.t.Cleanup(srv.Close)
	text := "base_url: https://" + srv.Listener.Addr().String()
	if trusted {
		text += "\n  ca_file: " + file
	}
	p.edit("base_url: "+p.url, text)
	p.must(0, "init") // the ledger has no entries yet
}

// selfMade makes a certificate that signs itself, and the file with it.
func selfMade(t *testing.T, change func(*x509.Certificate)) (*tls.Config, string) {
	t.Helper()
	key := kit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Acme Proxy CA"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour)}
	change(c)
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err == nil {
		err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	}
	kit.Must(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, file
}

// runsWithoutRights starts the daemon as a user whom file modes hold: root may
// read everything. It has the capabilities in caps alone.
func (p *plantedSite) runsWithoutRights(caps ...uintptr) {
	p.t.Helper()
	cmd := p.command("run")
	if os.Geteuid() == 0 {
		u, err := user.Lookup("daemon") // an account that every Debian has
		kit.Must(p.t, err)
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		for _, dir := range []string{filepath.Dir(p.dir), p.dir, filepath.Dir(realProgram(p.t))} {
			kit.Must(p.t, os.Chmod(dir, 0o755))
		}
		out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", uid, gid), p.dir).CombinedOutput()
		kit.Need(p.t, err == nil, "%v: %s", err, out)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, AmbientCaps: caps}
	}
	p.daemon = startProcess(p.t, cmd)
	kit.Await(p.t, "the daemon", func() bool { _, err := os.Lstat(filepath.Join(p.dir, "state", "vaultd.sock")); return err == nil })
}

// findPages notes the address of the pages.
func (p *plantedSite) findPages() {
	p.t.Helper()
	p.says("log", `"msg":"pages answer","address":"[^"]+"`)
	p.pages = regexp.MustCompile(`"pages answer","address":"([^"]+)"`).FindStringSubmatch(p.daemon.out.String())[1]
}

// stops ends the daemon.
func (p *plantedSite) stops() {
	p.t.Helper()
	p.daemon.stop(p.t)
	p.daemon = nil
}

// archives waits until the invoice in acme is archived.
func (p *plantedSite) archives() {
	p.t.Helper()
	kit.Await(p.t, "the invoice to be archived", p.inState("archived", 1))
}

func (p *plantedSite) do(errs ...error) {
	p.t.Helper()
	kit.Must(p.t, errors.Join(errs...))
}

// remount changes the mount at the drop folder acme.
func (p *plantedSite) remount(flags uintptr) {
	p.t.Helper()
	p.do(unix.Mount("", filepath.Join(p.dir, "acme"), "", unix.MS_REMOUNT|flags, ""))
}

const readWritePaths = `systemctl edit vaultd, add the lines \[Service\] and ReadWritePaths=DIR/acme, then systemctl daemon-reload and systemctl restart vaultd`

var toldFaults = map[string]toldFault{
	"WrongPassword": { // also the first alarm: what the first answer says for certain is told at once
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.do(os.WriteFile(filepath.Join(p.dir, "secret"), []byte("other\n"), 0o600))
			p.runs()
		},
		told: map[string][]string{
			"3 status": {`(?m)^NOW +vault ACME paused since .*: the service refuses the credentials, or a right: .*403 Forbidden.*; 1 wait, none lost\n +renew the secret file, which is read again by itself; .*; next try (\d+ \w+ )?\d\d:\d\d CES?T`},
			"0 why|otto-0": {`Waits for +vault ACME \(since \d\d:\d\d CES?T\): paused: the service refuses the credentials, or a right: `,
				`renew the secret file`},
			"log":       {`"msg":"route paused".*"cause":"http-403".*"do":"renew the secret file`},
			"page":      {`(?m)^DELAYED since (\d+ \w+ )?\d\d:\d\d\.\r?\nYour folders are safe and will be sent\.`},
			"77 vaults": {`403 Forbidden`, `hint: renew the secret file`},
			"0 check":   {`ADVICE +the credentials may be wrong, or this user may not see the list: `},
		},
		cure: func(p *plantedSite) {
			p.do(os.WriteFile(filepath.Join(p.dir, "secret"), []byte("demo\n"), 0o600))
			p.archives()
		},
	},
	"WrongClientSecret": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{ClientID: "demo", ClientSecret: "other", Scopes: []string{"importDocuments.write"}})
			p.edit("auth: {method: basic, username: demo", "auth: {method: oauth2, scopes: [importDocuments.write], username: demo")
			p.runs()
		},
		told: map[string][]string{
			"3 status": {`(?m)^NOW +vault ACME paused since .*: get a token: .*invalid_client`, `renew the secret file`},
			"page":     {`(?m)^DELAYED since`},
		},
	},
	"UnreadableSecret": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.daemon = p.begin()
			p.do(os.Remove(filepath.Join(p.dir, "secret")))
			p.add("acme", "otto", 1)
		},
		told: map[string][]string{
			"3 status": {`(?m)^NOW +vault ACME paused since .*the secret cannot be read`},
			"page":     {`(?m)^DELAYED since`},
		},
	},
	"UnknownVault": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.edit("vault: ACME", "vault: ACNE")
			p.runs()
		},
		told: map[string][]string{
			"3 status":     {`(?m)^NOW +vault ACNE paused since .*\n.*compare the vault's id with vaultd vaults`},
			"0 why|otto-0": {`(?s)Waits for +vault ACNE .*compare the vault's id with vaultd vaults`},
			"log":          {`"msg":"route paused".*"do":"[^"]*compare the vault's id with vaultd vaults`},
		},
	},
	"TooManyCalls": {
		plant: func(p *plantedSite) {
			p.at(always("register", emulator.Fault{Kind: emulator.Status, Status: 429, RetryAfter: time.Hour}))
			p.runs()
		},
		told: map[string][]string{
			"0/3 status": {`(?m)^(PAUSED|NOW) +vault ACME .*the service asks us to slow down until .*429 Too Many Requests.*\n +nothing to do: it is tried again by itself`},
			"0 why|otto-0": {`the service asks us to slow down until (\d+ \w+ )?\d\d:\d\d: `, `next try (\d+ \w+ )?\d\d:\d\d CES?T`,
				`nothing to do: it is tried again by itself`},
			"log": {`"msg":"route paused".*"do":"nothing to do: it is tried again by itself`},
		},
	},
	"ServiceFaulty": {
		plant: func(p *plantedSite) {
			p.at(always("register", emulator.Fault{Kind: emulator.Status, Status: 500}))
			p.runs()
		},
		told: map[string][]string{
			"0/3 status":   {`(?m)^(PAUSED|NOW) +vault ACME since .*: the service is faulty: .*500 Internal Server Error.*\n +nothing to do: it is tried again by itself\. If it lasts for hours, ask the provider, and name the request id`},
			"0 why|otto-0": {`the service is faulty: `, `nothing to do: it is tried again by itself`},
			"log":          {`"msg":"route paused".*"do":"nothing to do: it is tried again by itself`},
		},
	},
	"ExpiredCertificate": {
		plant: func(p *plantedSite) {
			p.secured(true, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-24 * time.Hour) })
			p.runs()
		},
		told: map[string][]string{
			"0/3 status":   {`(?m)^(PAUSED|NOW) +vault ACME .*the certificate of the service \(127\.0\.0\.1:\d+\) was valid until \d+ \w+ \d{4} \d\d:\d\d UTC; by this machine's clock it is .*\n +look at the date of this machine \(timedatectl\)\. If that is right, the certificate must be renewed`},
			"0 why|otto-0": {`was valid until`, `no setting of vaultd helps`},
			"log":          {`"cause":"certificate-expired".*"do":"look at the date`},
			"69 vaults":    {`was valid until`, `hint: look at the date of this machine`},
			"0 check":      {`ADVICE +service\.base_url may be wrong, .*was valid until`},
		},
	},
	"ForeignCertificate": {
		plant: func(p *plantedSite) {
			p.secured(false, func(*x509.Certificate) {})
			p.runs()
		},
		told: map[string][]string{
			"0/3 status": {`(?m)^(PAUSED|NOW) +vault ACME .*the certificate of the service \(127\.0\.0\.1:\d+\) is from an authority that this machine does not know \(it is for 127\.0\.0\.1, issued by itself, valid from .* until .* UTC\)\n +if that is the authority of your provider or of your company's proxy, write the path of its PEM file into service\.ca_file`},
			"69 vaults":  {`hint: if that is the authority of your provider`},
		},
	},
	"WrongBaseURL": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.edit("base_url: "+p.url, "base_url: "+p.url+"/archive")
			p.edit("window: 10s", "window: 3s")
			p.edit("unclear_grace: 20s", "unclear_grace: 3s") // reconcile waits for it
			p.must(0, "init")
			p.runs()
		},
		told: map[string][]string{
			"0/3 status": {`(?m)^(PAUSED|NOW) +vault ACME .*not the service answers, but a gateway in front of it: .*502 Bad Gateway.*\n +it is tried again by itself\. If it lasts, look at service\.base_url, of whose path the capitals count, and at the vault's id \(vaultd vaults\)\. The ledger is bound to base_url: after a correction vaultd check says how to bind it anew`},
			"0 check":    {`ADVICE +service\.base_url may be wrong, or the archive is away just now: .*502 Bad Gateway`},
		},
		cure: cureBaseURL,
	},
	"ReadOnlyDrop": {
		mounts: true,
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.edit(`listen: ""`, `listen: "127.0.0.1:0"`)
			small(p.t, filepath.Join(p.dir, "acme"), "size=8m")
			p.must(0, "run", "--once")
			p.says("page", "INVOICE ARCHIVE acme")
			p.remount(unix.MS_RDONLY)
			p.daemon = p.begin()
			p.findPages()
		},
		told: map[string][]string{
			"3 status":     {`(?m)^NOW +drop acme paused: "DIR/acme" is read-only for vaultd: nothing can be taken from it, and its _STATUS\.txt is old\n +under systemd, name the folder in the unit: ` + readWritePaths, `(?m)^acme .*PAUSED`},
			"1 why|otto-9": {`what lies in drop acme is not known, for it is paused: "DIR/acme" is read-only for vaultd`, `ReadWritePaths=DIR/acme`},
			"log":          {`"msg":"drop paused","drop":"acme","err":".*is read-only for vaultd.*","do":"under systemd, name the folder in the unit: ` + readWritePaths},
			"readyz":       {`^503\n(?s).*drop acme paused`},
			"metrics":      {`(?m)^vaultd_drop_paused\{drop="acme"\} 1$`},
			"0 check":      {`LOOK AT +drop acme: "DIR/acme" is read-only for vaultd.*ReadWritePaths=DIR/acme`},
		},
		cure: func(p *plantedSite) {
			p.remount(0)
			p.add("acme", "otto", 1)
			p.archives()
		},
	},
	"FullDisk": {
		mounts: true,
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.onSmallState("size=24m")
			p.daemon = p.begin()
			p.says("page", "INVOICE ARCHIVE acme")
			hog(p.t, filepath.Join(p.dir, "state"))
			p.add("acme", "otto", 1)
		},
		told: map[string][]string{
			"3 status":     {`the disk of state_dir has .* left, below spool\.min_free \(8\.0 MB\)`, `free space there; it goes on by itself`},
			"0 why|otto-0": {`no room`, `free space on the disk that is named; it is taken by itself then`},
			"page":         {`WAITING FOR ROOM \(1\)`, `waits: the archive server's disk is full`},
		},
	},
	"UnreadableFile": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.add("acme", "otto", 1)
			p.do(os.Chmod(filepath.Join(p.dir, "acme", "otto-0", "rechnung.pdf"), 0))
			p.runsWithoutRights()
		},
		told: map[string][]string{
			"page":         {`otto-0 .*rechnung\.pdf`, `IT must`},
			"0 why|otto-0": {`rechnung\.pdf`},
			"3 status":     {`(?m)^NOW +1 taken folder cannot be read\n +otto-0 \(acme\): cannot be read: "rechnung\.pdf" .*\n +give the share's group the right to read`},
			"log":          {`"msg":"claimed folder not packed".*"err":"cannot be read: \\"rechnung\.pdf\\" `},
		},
	},
	"PlaceOfAClerk": {
		plant: func(p *plantedSite) {
			if os.Geteuid() != 0 {
				kit.Missing(p.t, "needs root: a folder of another user")
			}
			p.at(emulator.Config{ArchiveMax: 100 * time.Millisecond})
			place := filepath.Join(p.dir, "acme", "_archived")
			p.do(os.RemoveAll(place), os.Mkdir(place, 0o700), os.Chown(place, 47_111, -1))
			p.runs()
		},
		told: map[string][]string{
			"3 status": {`(?m)^NOW +drop acme: "DIR/acme/_archived" was made by user 47111, not by vaultd: .*\n +as root: mv -n DIR/acme/_archived `},
			"1 doctor": {`FAIL  drop acme: "DIR/acme/_archived" was made by user 47111`},
			"log":      {`a place for results is somebody else's`},
		},
		cure: func(p *plantedSite) {
			p.do(os.Remove(filepath.Join(p.dir, "acme", "_archived")))
			p.archives()
			kit.Await(p.t, "the receipt", func() bool {
				all, _ := filepath.Glob(filepath.Join(p.dir, "acme", "_archived", "*", "otto-0", "_RECEIPT.txt"))
				return len(all) == 1
			})
			p.says("0 doctor", "OK    drop acme")
		},
	},
	"WrongMode": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.add("acme", "otto", 1)
			p.do(os.Chmod(filepath.Join(p.dir, "acme", "otto-0"), 0o555))
			p.runsWithoutRights()
		},
		told: map[string][]string{
			"page":         {`otto-0 +no right to take it \(owner .*, 0555\) since .*: IT must set the share's masks`},
			"0 why|otto-0": {`no right`, `docs/samba\.md`},
			"3 status":     {`(?m)^NOW +drop acme: 1 not taken: no right\n +otto-0: .*\n +set the rights of the share`},
			"log":          {`"msg":"folder not taken".*"reason":"no right"`},
		},
	},
	"ClockOff": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{ArchiveMax: 100 * time.Millisecond, Clock: func() time.Time { return time.Now().Add(time.Hour) }})
			p.runs()
		},
		told: map[string][]string{
			"3 status": {`(?m)^SOON +the clock of this machine was .* behind the archive service's at the last registration\n +set the time \(timedatectl`},
		},
	},
	"LedgerDeleted": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.do(os.Remove(filepath.Join(p.dir, "state", "ledger.db")))
		},
		told: map[string][]string{
			"78 run":    {`the ledger is missing`, `hint: .*vaultd restore FILE`},
			"78 status": {`the ledger is missing`, `hint: .*vaultd restore FILE`},
		},
	},
	"LedgerTruncated": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.edit(`listen: ""`, `listen: "127.0.0.1:0"`)
			p.do(os.Truncate(filepath.Join(p.dir, "state", "ledger.db"), 10_000))
			p.daemon = p.begin()
			p.findPages()
		},
		told: map[string][]string{
			"log":                   {`"msg":"SAFE MODE: the ledger is not opened, and nothing is taken, sent or removed","why":".*the ledger is damaged: `, `"do":".*Keep the file: vaultd restore FILE`},
			"74 status":             {`the ledger is damaged: `, `hint: .*Keep the file: vaultd restore FILE`},
			"74 list|--json":        {`{"error":".*the ledger is damaged: .*","hint":".*","code":74}`},
			"readyz":                {`"SAFE MODE: the ledger is not opened: .*the ledger is damaged: `},
			"livez":                 {`"status": "ok"`},
			"metrics":               {`vaultd_safe_mode 1`, `vaultd_ready 0`, `vaultd_needs_person\{what="damaged"\} 1`},
			"75 run":                {`is in use by vaultd run`},
			"75 rebuild|--reason=x": {`is in use by vaultd run`, `hint: stop the other one first`},
		},
		cure: func(p *plantedSite) {
			kit.Lacks(p.t, "figures of a ledger that is not open", p.get("/metrics"), "vaultd_folders", "vaultd_ledger_lines")
			kit.Holds(p.t, "the page", p.get("/"), "SAFE MODE", "Keep the file")
			kit.Want(p.t, "exit code", p.daemon.stop(p.t), 0)
		},
	},
	"SecondDaemon": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.daemon = p.begin()
		},
		told: map[string][]string{
			"75 run": {`DIR/state is in use by vaultd run, process \d+ on .* since .*`, `hint: stop the other one first`},
		},
	},
	"ConfigurationTypo": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.edit("settle: 300ms", "setle: 300ms")
		},
		told: map[string][]string{
			"78 check": {`config\.yaml:\d+:\d+: drops\[0\]\.setle: is not a known key`, `(?m)^ +\| +\^$`, `did you mean settle\?`},
			"78 run":   {`did you mean settle\?`},
		},
	},
	"YAMLSyntax": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.edit("  base_url: ", "\tbase_url: ")
		},
		told: map[string][]string{
			"78 check": {`config\.yaml:3:1: cannot be read as YAML: a tab stands where only spaces may stand\n  3 \|  base_url: .*\n    \| \^\n  hint: replace the tab by spaces`},
		},
	},
	"SamePathTwice": {
		plant: func(p *plantedSite) {
			p.at(emulator.Config{})
			p.do(os.Remove(filepath.Join(p.dir, "beta")), os.Symlink(filepath.Join(p.dir, "acme"), filepath.Join(p.dir, "beta")))
		},
		told: map[string][]string{
			"78 check": {`drops\[1\]\.path: DIR/beta is the same folder as DIR/acme \(drops\[0\]\.path, drop "acme"\): a link or a mount leads there, and drop "beta" and drop "acme" must be apart`},
			"78 run":   {`DIR/beta is the same folder as DIR/acme`},
		},
	},
}

// cureBaseURL goes the way that the words about a wrong base_url tell, to its end.
func cureBaseURL(p *plantedSite) {
	p.stops()
	p.edit("base_url: "+p.url+"/archive", "base_url: "+p.url+"/v1")
	p.says("78 check", `service\.base_url: has v1 in its path, which vaultd adds itself`)
	p.edit("base_url: "+p.url+"/v1", "base_url: "+p.url)
	for _, command := range []string{"0 check|--offline", "3 status", "78 run"} {
		p.says(command, `the ledger was made for service ".*/archive", the configuration says "`)
		p.says(command, `move ledger\.db and ledger\.head\.\* out of state_dir, and keep them; then vaultd rebuild --reason "wrong base_url", start vaultd, and a minute later vaultd reconcile`)
	}
	for _, name := range []string{"ledger.db", "ledger.head.1"} {
		p.do(os.Rename(filepath.Join(p.dir, "state", name), filepath.Join(p.dir, name)))
	}
	p.must(0, "rebuild", "--reason", "wrong base_url")
	p.daemon = p.begin()
	kit.Await(p.t, "reconcile to end safe mode", func() bool { _, code := p.vaultd("reconcile"); return code == 0 })
	p.archives()
}
