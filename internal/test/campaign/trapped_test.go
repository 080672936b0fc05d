package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// deedsIn is set, to a directory, for a child that works in it. deedsName says
// what it does.
const (
	deedsIn   = "CAMPAIGN_DEEDS"
	deedsName = "CAMPAIGN_DEEDS_NAME"
)

var deedsOf = map[string]func(dir string) error{"": deeds, "open": openLedger, "commit": commitToLedger}

// openLedger opens the ledger; the process ends without closing it.
func openLedger(dir string) error {
	_, err := boltledger.Open(boltledger.Config{Dir: filepath.Join(dir, "state")})
	return err
}

// commitToLedger takes one folder.
func commitToLedger(dir string) error {
	l, err := boltledger.Open(boltledger.Config{Dir: filepath.Join(dir, "state")})
	if err != nil {
		return err
	}
	_, err = l.Apply(context.Background(), ledger.Change{Key: archive.NewKey(time.Now()), At: archive.Instant{Wall: time.Now()}, Events: []ledger.Event{
		ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "acme-in", Folder: "Huber 88", Fingerprint: archive.Digest{1}}}})
	return err
}

// deeds changes a directory in every way that is trapped, and syncs some of it.
func deeds(dir string) error {
	at := func(name string) string { return filepath.Join(dir, "drops", name) }
	file, err := os.OpenFile(at("a/overwritten"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte("XXXX"), 2)
	return errors.Join(err,
		os.Mkdir(at("a/dir"), 0o770),
		os.WriteFile(at("a/made"), []byte("new"), 0o660),
		os.WriteFile(at("a/emptied"), []byte("more"), 0o660),
		os.Rename(at("a/moved"), at("b/moved")),
		os.Rename(at("a/moving"), at("a/replaced")),
		os.Remove(at("a/removed")), os.Remove(at("a/removed dir")),
		os.WriteFile(at("c/safe"), []byte("safe"), 0o660), synced(at("c/safe")), synced(at("c")),
		os.WriteFile(at("c/no name yet"), []byte("its content is safe"), 0o660), synced(at("c/no name yet")))
}

func synced(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// prepare makes what deeds works on, and the watcher over a child that does it.
func prepare(t *testing.T, fatal func(point, int) bool) (dir string, do func() *watcher) {
	t.Helper()
	if !canTrap(t, "/bin/true") {
		t.SkipNow()
	}
	dir = t.TempDir()
	for _, sub := range []string{"drops/a/removed dir", "drops/b", "drops/c", "aside"} {
		kit.Must(t, os.MkdirAll(filepath.Join(dir, sub), 0o770))
	}
	for _, name := range []string{"moved", "moving", "replaced", "removed", "overwritten", "emptied"} {
		kit.Must(t, os.WriteFile(filepath.Join(dir, "drops/a", name), []byte("once "+name), 0o660))
	}
	return dir, func() *watcher { return runTrapped(t, dir, "", fatal, &power{aside: filepath.Join(dir, "aside")}) }
}

// runTrapped runs a child that does what name says, to its end or its death.
func runTrapped(t *testing.T, dir, name string, fatal func(point, int) bool, p *power) *watcher {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), deedsIn+"="+dir, deedsName+"="+name)
	cmd.Stderr = os.Stderr
	l := kit.Value(startTrapped(cmd))(t)
	w := &watcher{listener: l, pid: cmd.Process.Pid, dir: dir, fatal: fatal, power: p, over: make(chan struct{}), seen: map[string]int{}}
	go w.run()
	err := cmd.Wait()
	kit.Need(t, err == nil || fatal != nil, "%s: error: %v", name, err)
	<-w.over
	return w
}

// cutAll cuts the power so that all is lost that was never synced.
func (w *power) cutAll() {
	for seed := uint64(0); ; seed++ {
		if rand.New(rand.NewPCG(seed, 0)).IntN(2) == 0 {
			w.cut(rand.New(rand.NewPCG(seed, 0)))
			return
		}
	}
}

// A process is killed at any call of a commit, the next one opens the ledger, and then the power goes. What the next one found is durable before
// it writes the outside head and acts on it: the ledger opens again, and holds what the next one held.
func TestPowerCut_I5_AfterAKillAndAStart(t *testing.T) {
	if !canTrap(t, "/bin/true") {
		t.SkipNow()
	}
	for n, killed := 1, "?"; killed != ""; n++ {
		dir := t.TempDir()
		for _, sub := range []string{"state", "aside"} {
			kit.Must(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
		}
		c := boltledger.Config{Dir: filepath.Join(dir, "state")}
		kit.Must(t, boltledger.Create(c.Dir, ledger.Info{ID: "L-1", Environment: "test", BaseURL: "https://x", Created: time.Now()}))
		p := &power{aside: filepath.Join(dir, "aside")}
		_, killed = runTrapped(t, dir, "commit", func(_ point, all int) bool { return all == n }, p).result()
		runTrapped(t, dir, "open", nil, p)
		f := kit.Value(os.Open(filepath.Join(c.Dir, "ledger.db")))(t)
		_, want, err := boltledger.InspectOpenFile(f)
		kit.Must(t, errors.Join(err, f.Close()))
		p.cutAll()
		l, err := boltledger.Open(c)
		kit.Need(t, err == nil, "killed before call %d of a commit (%s), opened, power cut: %v", n, killed, err)
		kit.Want(t, fmt.Sprintf("killed before call %d of a commit (%s): the end of the journal", n, killed), l.Head(), want)
		kit.Must(t, l.Close())
	}
}

// A cut of the power takes back what was not synced and nothing else: the campaign would prove little if it did not.
func TestPowerCut(t *testing.T) {
	dir, do := prepare(t, nil)
	want := tree(t, dir)
	want["drops/c/safe"] = "safe"
	w := do()
	after := tree(t, dir)
	if after["drops/a/emptied"] != "more" || after["drops/b/moved"] != "once moved" || after["drops/a/replaced"] != "once moving" || after["drops/a/removed dir"] != "" {
		t.Fatalf("it did not do its work: %q", after)
	}
	w.power.cutAll()
	kit.Want(t, "after the cut", tree(t, dir), want)
}

// Each trapped call can be the last: the process dies, the call is not made, and those before it are.
func TestKilledBeforeTheCall(t *testing.T) {
	steps := map[string]bool{}
	last := ""
	for n := 1; n < 40; n++ {
		dir, do := prepare(t, func(_ point, all int) bool { return all == n })
		w := do()
		_, killed := w.result()
		if killed == "" {
			if n < 15 || len(steps) < n-5 { // a sync changes nothing that can be seen
				t.Errorf("%d calls, %d different ends", n-1, len(steps))
			}
			return
		}
		kit.Want(t, "calls until the end", w.all, n)
		now := fmt.Sprint(tree(t, dir))
		kit.Check(t, !steps[now] || now == last,
			"killed before call %d (%s), it is as it was long before: %s", n, killed, now)
		steps[now], last = true, now
	}
}

// tree gives what lies in the drop folders below dir: the content of files, "/" for folders.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	kit.Must(t, filepath.WalkDir(filepath.Join(dir, "drops"), func(path string, d os.DirEntry, err error) error {
		rel, errRel := filepath.Rel(dir, path)
		if err = cmp.Or(err, errRel); err != nil || d.IsDir() {
			all[rel] = "/"
			return err
		}
		data, err := os.ReadFile(path)
		all[rel] = string(data)
		return err
	}))
	return all
}

// publishReceived lets a document come in over the business network: an invoice or a credit note, with up to three files.
func (c *campaign) publishReceived(n int) {
	c.t.Helper()
	d := emulator.ReceivedDocument{Kind: []string{"Invoice", "CreditNote"}[n%2], Data: fmt.Appendf(nil,
		`{"externalDocumentIdentifier":{"id":"R-%d"},"issueDate":"2026-10-%02d","documentCurrencyCode":"EUR","accountingSupplierParty":{"partyName":"Otto & Söhne"},"taxTotal":{"taxSubtotals":[{"taxableAmount":%d.50}]}}`, n, 1+n%28, n)}
	for i := range c.r.IntN(4) {
		content := make([]byte, 1+c.r.IntN(200_000))
		kit.Value(rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(i), 3}).Read(content))(c.t)
		d.Files = append(d.Files, emulator.ReceivedFile{Name: fmt.Sprintf("file %d.pdf", i), Content: slices.Concat([]byte("%PDF-1.7\n"), content, []byte("\n%%EOF\n"))})
	}
	kit.Value(c.service.PublishReceived(d))(c.t)
}

// exchange is what must be archived of the business network, by its identity there: what was delivered to others, and what came in.
func (c *campaign) exchange() (all map[string]emulator.NetworkDocument) {
	all = map[string]emulator.NetworkDocument{}
	for _, d := range c.service.SentDocuments() {
		if c.toldOf(d.BumID).delivered {
			all[archive.DeriveSentID(archive.RemoteID(d.BumID)).String()] = d
		}
	}
	for _, d := range c.service.ReceivedDocuments() {
		all[archive.DeriveReceivedID(archive.RemoteID(d.BumID)).String()] = d
	}
	return all
}

// openExchange names what is not archived yet of the business network.
func (c *campaign) openExchange() (left []string) {
	archived := map[string]bool{}
	for _, r := range c.service.Registrations() {
		archived[r.ClientUUID] = archived[r.ClientUUID] || !r.ArchivedAt.IsZero()
	}
	for id, d := range c.exchange() {
		if !archived[id] {
			left = append(left, fmt.Sprintf("document %s of the business network is not archived", d.BumID))
		}
	}
	return left
}

func countExchanged(entries []ledger.Entry) (n int) {
	for _, e := range entries {
		if e.Drop == exchanged.name {
			n++
		}
	}
	return n
}

// judgeExchange holds what the archive has of the business network to what was sent and what came in: each once, with every file byte for byte, and
// nothing else. It returns their identities.
func (c *campaign) judgeExchange(entries []ledger.Entry) map[string]bool {
	c.t.Helper()
	want, of := c.exchange(), map[string]bool{}
	for id := range want {
		of[id] = true
	}
	ids := map[archive.Key]archive.ID{}
	for _, e := range entries {
		ids[e.Key] = e.ID
	}
	for _, e := range entries {
		id := e.ID
		if e.State == ledger.Duplicate { // as a copy is that was made again after a death: it has the identity of its first
			id = ids[e.DuplicateOf]
		}
		kit.Check(c.t, e.Drop != exchanged.name || (of[id.String()] && (e.State == ledger.Archived || e.State == ledger.Duplicate)),
			"I12: %q is %s, and nothing of the business network is it: %s", e.Folder, e.State, e.Cause.Text)
	}
	times := map[string]int{}
	for _, r := range c.service.Registrations() {
		if r.ArchivedAt.IsZero() || !of[r.ClientUUID] {
			continue
		}
		times[r.ClientUUID]++
		kit.Want(c.t, "I4: document "+want[r.ClientUUID].BumID, c.compareExchanged(r.SHA256, want[r.ClientUUID]), nil)
	}
	for id, d := range want {
		kit.Want(c.t, "I2: document "+d.BumID+" of the business network is archived", times[id], 1)
	}
	c.exchanged = len(times)
	return of
}

// compareExchanged compares a package of the archive with a document of the business network: its files, and the body of what was sent.
func (c *campaign) compareExchanged(object string, d emulator.NetworkDocument) error {
	files, err := readZIP(filepath.Join(c.service.dir, "objects", object))
	if err != nil {
		return err
	}
	if body, is := files["sent.json"]; is && archive.Sum(body).String() != d.SHA256 {
		return fmt.Errorf("sent.json is not the body that the network took")
	}
	var have, want []string
	for name, content := range files {
		if !strings.HasSuffix(name, ".json") {
			have = append(have, archive.Sum(content).String())
		}
	}
	for _, f := range d.Files {
		want = append(want, f.SHA256)
	}
	slices.Sort(have)
	if slices.Sort(want); !slices.Equal(have, want) || files["document.json"] == nil {
		return fmt.Errorf("the archive holds %q, the network %d files beside the document", slices.Sorted(maps.Keys(files)), len(d.Files))
	}
	return nil
}
