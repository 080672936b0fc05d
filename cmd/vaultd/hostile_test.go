package main_test

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// ending is what becomes of something that was dropped.
type ending string

const (
	archives ending = "archived" // as it is: there is nothing wrong with it
	returns  ending = "returned" // to _rejected, with a _REASON.txt
	waits    ending = "waits"    // it stays where it is, and _STATUS.txt says why
	claimed  ending = "claimed"  // it was taken, cannot go on, and _STATUS.txt says why
	ignored  ending = "ignored"  // nobody would drop it as an invoice
)

// hostile is one thing that nobody should drop, how it is made, and what becomes of it.
type hostile struct {
	name   string                       // of the row
	drop   string                       // where it is dropped
	folder string                       // its name in the drop folder; empty: name
	make   func(y *yard, at string)     // makes it at a path beside the drop folder, from where it is moved in
	live   func(y *yard, inside string) // goes on in the drop folder itself
	want   ending
	says   []string // all of this in what people read about it
	root   bool     // only root can make it
}

func (h hostile) path() string {
	if h.folder != "" {
		return h.folder
	}
	return h.name
}

// fate finds a dropped folder again, and what people read about it.
func (y *yard) fate(drop, folder string) (v ending, text string) {
	for _, name := range []string{folder, folder + " (2)"} {
		if text, err := os.ReadFile(filepath.Join(y.dir, drop, "_rejected", name, "_REASON.txt")); err == nil {
			return returns, notepad(text)
		}
		months, err := os.ReadDir(filepath.Join(y.dir, drop, "_archived"))
		kit.Need(y.t, err == nil || os.IsNotExist(err), "error: %v", err)
		for _, month := range months {
			if text, err := os.ReadFile(filepath.Join(y.dir, drop, "_archived", month.Name(), name, "_RECEIPT.txt")); err == nil {
				return archives, notepad(text)
			}
		}
	}
	status, err := os.ReadFile(filepath.Join(y.dir, drop, "_STATUS.txt"))
	if err != nil {
		return ignored, ""
	}
	for line := range strings.Lines(notepad(status)) {
		if rest, ok := strings.CutPrefix(line, "  "+shownName(folder)); ok && (rest == "" || rest[0] == ' ' || len(folder) > 40) {
			if _, err := os.Lstat(filepath.Join(y.dir, drop, folder)); err != nil {
				return claimed, line
			}
			return waits, line
		}
	}
	return ignored, ""
}

func notepad(text []byte) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n")
}

// shownName is how _STATUS.txt writes a name, as far as it writes it.
func shownName(name string) string {
	r := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(name, "\ufffd")))
	return string(r[:min(len(r), 40)])
}

// jargon is what no clerk understands.
var jargon = regexp.MustCompile(`\bE(PERM|ACCES|NOENT|INVAL|BUSY|XDEV|ROFS|NOTDIR|ISDIR|LOOP|IO|NOTEMPTY|NOSPC|NXIO|XIST)\b|errno|syscall|lstat|openat|\bopen /|no such file|permission denied|operation not permitted|invalid argument|not a directory|goroutine|panic|0x[0-9a-f]|<nil>|unexpected|/tmp/|\.vaultd|structure needs|\bfailed\b`)

// misunderstood says what is wrong with words for a clerk.
func misunderstood(drop string, v ending, text string) string {
	switch {
	case v != archives && jargon.MatchString(text): // a receipt has names of files
		return fmt.Sprintf("%q is no word for a clerk", jargon.FindString(text))
	case steers(text) != "":
		return "holds " + steers(text)
	case v == returns && !strings.HasPrefix(text, "NOT ARCHIVED. "):
		return "does not begin with what happened"
	case v == returns && !strings.Contains(text, "move this whole folder back to "+drop):
		return "does not say what to do"
	case len(text) > 40_000:
		return "is too long to be read"
	}
	return ""
}

// steers finds what steers a terminal, turns or breaks lines, or is no text.
func steers(text string) string {
	for _, r := range strings.ToValidUTF8(text, "\x00") {
		if !strings.ContainsRune("\n\r\t\ufeff", r) && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
			return fmt.Sprintf("%U", r)
		}
	}
	return ""
}

// Everything that nobody should drop, at once, among good folders: each gets its verdict in words that a clerk
// understands, the good ones are not delayed, and nothing reaches outside, blows up, or steers what people look at.
func TestHostile_I19_I21_I23(t *testing.T) {
	kit.Waits(t, 15, "a process and writers of its own")
	t.Parallel()
	y, emu := newYard(t)
	before := y.census(y.outside)
	y.start()
	good := y.neighbours("vorher", 2)
	var dropped []hostile
	for i, row := range corpus() {
		if row.root && os.Geteuid() != 0 {
			t.Logf("SKIPPED, only root can make it: %s", row.name)
			continue
		}
		row.make(y, filepath.Join(y.staging, row.path()))
		y.moveIn(row.drop, row.path())
		if row.live != nil {
			row.live(y, filepath.Join(y.dir, row.drop, row.path()))
		}
		dropped = append(dropped, row)
		if i%40 == 20 {
			good = append(good, y.neighbours(fmt.Sprint("mitten ", i), 1)...)
		}
	}
	began := time.Now()
	y.deadline = began.Add(time.Minute)
	y.archived(y.neighbours("nachher", 3), 50*time.Second)
	t.Logf("%d hostile things; the last neighbours took %v", len(dropped), time.Since(began))
	y.archived(good, 20*time.Second) // the order among the good ones is free
	for _, row := range dropped {
		y.judge(row)
	}
	y.bounded()
	y.outputs()
	kit.Want(t, "outside", y.census(y.outside), before)
	y.aftermath(emu)
}

// corpus is all of it, each kind in a drop folder of its own: _STATUS.txt names twenty of a kind.
func corpus() (all []hostile) {
	for drop, rows := range map[string][]hostile{"acme": hostileThings(), "rights": hostileRights(), "names": hostileNames(), "sidecars": hostileSidecars()} {
		for _, row := range rows {
			row.drop = drop
			all = append(all, row)
		}
	}
	return all
}

// aftermath stops the daemon and looks at what is left.
func (y *yard) aftermath(emu *emulator.Server) {
	y.t.Helper()
	kit.Want(y.t, "the daemon ended", y.daemon.stop(y.t), 0)
	y.site.must(0, "verify", "--whole")
	log := y.daemon.out.String()
	kit.Lacks(y.t, "log", log, "panic", "goroutine ", secretOutside)
	kit.Want(y.t, "the log", steers(log), "")
	for _, v := range emu.Violations() {
		y.t.Errorf("the service saw: %s", v)
	}
	kit.Check(y.t, emu.CountCalls("register") != 0, "nothing was sent: vacuous")
}

// archived waits until each folder lies among the archived ones.
func (y *yard) archived(paths []string, within time.Duration) {
	y.t.Helper()
	deadline := time.Now().Add(within)
	for _, p := range paths {
		drop, folder := filepath.Split(p)
		v, text := y.fate(drop, folder)
		for ; v != archives && time.Now().Before(deadline); v, text = y.fate(drop, folder) {
			time.Sleep(50 * time.Millisecond) // a process of its own has no virtual time
		}
		kit.Check(y.t, v == archives, "good neighbour %s: %s, %q", p, v, text)
	}
}

// judge waits for the verdict on a row and looks at its words.
func (y *yard) judge(row hostile) {
	y.t.Helper()
	var v ending
	var text string
	for {
		v, text = y.fate(row.drop, row.path())
		if v == row.want && !slices.ContainsFunc(row.says, func(s string) bool { return !strings.Contains(text, s) }) || time.Now().After(y.deadline) {
			break
		}
		time.Sleep(50 * time.Millisecond) // a process of its own has no virtual time
	}
	if v != row.want {
		y.t.Errorf("%s: %s, want %s: %s", row.name, v, row.want, text)
		return
	}
	for _, s := range row.says {
		kit.Holds(y.t, row.name, text, s)
	}
	bad := misunderstood(row.drop, v, text)
	kit.Check(y.t, bad == "", `%s: %s: %s, want bad = ""`, row.name, bad, text)
}

// yard is a site with a running vaultd that is not root, so that rights count.
type yard struct {
	*site
	uid, gid int
	staging  string
	outside  string // what links lead to: nothing of it may be read, moved or changed
	daemon   *process
	base     string // address of the status page
	next     int
	deadline time.Time // for every ending
}

func (y *yard) must(err error) {
	y.t.Helper()
	kit.Must(y.t, err)
}

const secretOutside = "SECRET-OF-ANOTHER"

func newYard(t *testing.T) (*yard, *emulator.Server) {
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 300 * time.Millisecond})
	y := &yard{site: newSite(t, url, fast)}
	l, err := net.Listen("tcp", "127.0.0.1:0") // an address that nobody listened on just now
	y.must(err)
	y.base = "http://" + l.Addr().String()
	y.must(l.Close())
	text, err := os.ReadFile(y.config)
	y.must(err)
	y.must(os.WriteFile(y.config, []byte(strings.NewReplacer("rescan: 1s}", "rescan: 500ms, remind_after: 1s}", "  - {name: beta", fmt.Sprintf(`  - {name: names, path: %[1]s/names, vault: ACME, settle: 300ms, rescan: 500ms, remind_after: 1s}
  - {name: sidecars, path: %[1]s/sidecars, vault: ACME, settle: 300ms, rescan: 500ms, remind_after: 1s}
  - {name: rights, path: %[1]s/rights, vault: ACME, settle: 300ms, rescan: 500ms, remind_after: 1s}
  - {name: beta`, y.dir),
		`listen: ""`, "listen: "+l.Addr().String()).Replace(string(text))), 0o640))
	for _, drop := range []string{"names", "sidecars", "rights"} {
		y.must(os.Mkdir(filepath.Join(y.dir, drop), 0o770))
	}
	y.staging, y.outside = filepath.Join(y.dir, "staging"), filepath.Join(y.dir, "outside")
	y.must(os.Mkdir(y.staging, 0o755))
	y.must(os.MkdirAll(filepath.Join(y.outside, "folder"), 0o755))
	for name, content := range map[string]string{"secret.txt": secretOutside, "folder/rechnung.pdf": secretOutside,
		"folder/metadata.json": `{"documentType": "Invoice", "documentId": "OUTSIDE", "documentDate": "2026-10-31"}`} {
		y.must(os.WriteFile(filepath.Join(y.outside, name), []byte(content), 0o644))
	}
	y.uid, y.gid = os.Geteuid(), os.Getegid()
	if y.uid == 0 {
		y.becomeNobody()
	}
	return y, emu
}

// becomeNobody gives the site to an account that every Debian has: as root vaultd could read everything.
func (y *yard) becomeNobody() {
	y.t.Helper()
	u, err := user.Lookup("daemon")
	y.must(err)
	y.uid, err = strconv.Atoi(u.Uid)
	y.must(err)
	y.gid, err = strconv.Atoi(u.Gid)
	y.must(err)
	for _, dir := range []string{filepath.Dir(y.dir), y.dir, filepath.Dir(realProgram(y.t))} {
		y.must(os.Chmod(dir, 0o755))
	}
	for _, top := range []string{"state", "acme", "beta", "names", "sidecars", "rights", "config.yaml", "secret"} {
		y.must(filepath.WalkDir(filepath.Join(y.dir, top), func(p string, _ os.DirEntry, err error) error {
			if err == nil {
				err = os.Lchown(p, y.uid, y.gid)
			}
			return err
		}))
	}
}

func (y *yard) start() {
	cmd := y.command("run", "-v")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(y.uid), Gid: uint32(y.gid)}}
	}
	y.daemon = startProcess(y.t, cmd)
	kit.Await(y.t, "the drop folder to be opened", func() bool { _, err := os.Stat(filepath.Join(y.dir, "acme/_STATUS.txt")); return err == nil })
}

// moveIn moves what lies at staging into a drop folder, whole.
func (y *yard) moveIn(drop, folder string) {
	y.t.Helper()
	y.must(os.Rename(filepath.Join(y.staging, folder), filepath.Join(y.dir, drop, folder)))
}

// give makes a path the group's, as setgid folders and masks of a share do.
func (y *yard) give(at string) {
	if os.Geteuid() == 0 {
		y.must(os.Lchown(at, -1, y.gid))
	}
}

// write makes a file and the folders above it.
func (y *yard) write(at, content string) {
	y.t.Helper()
	y.folder(filepath.Dir(at))
	y.must(os.WriteFile(at, []byte(content), 0o660))
	y.must(os.Chmod(at, 0o660))
	y.give(at)
}

func (y *yard) folder(at string) {
	if _, err := os.Lstat(at); err == nil || len(at) <= len(y.staging) {
		return
	}
	y.folder(filepath.Dir(at))
	y.must(os.Mkdir(at, 0o770))
	y.must(os.Chmod(at, 0o770))
	y.give(at)
}

// invoice makes a folder with which nothing is wrong; no two are alike.
func (y *yard) invoice(at string) {
	y.next++
	y.write(at+"/rechnung.pdf", fmt.Sprint("%PDF-1.4 ", y.next, "\n%%EOF\n"))
	y.write(at+"/metadata.json", fmt.Sprintf(`{"documentType": "Invoice", "documentId": "H-%d", "documentDate": "2026-10-31"}`, y.next))
}

// neighbours drops good folders into both drop folders and tells where.
func (y *yard) neighbours(round string, n int) (paths []string) {
	for i := range n {
		for _, drop := range []string{"acme", "beta"} {
			name := fmt.Sprintf("Gut %s %d", round, i)
			y.invoice(filepath.Join(y.staging, name))
			y.moveIn(drop, name)
			paths = append(paths, filepath.Join(drop, name))
		}
	}
	return paths
}
