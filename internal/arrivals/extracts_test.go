package arrivals

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// service is a tiny service with opinions: it counts downloads, refuses more than its limit, and hides what is acknowledged.
type service struct {
	t       testing.TB
	mu      sync.Mutex
	order   []archive.ExtractID
	have    map[archive.ExtractID]*kept
	atOnce  int
	most    int // downloads at once
	fault   func(op string) (before, after error)
	whole   bool
	changed int // how often the table definition was changed

	beforeAcknowledge func(archive.ExtractID) // nil: nothing is looked at
	takes             time.Duration           // of a download
}

type kept struct {
	archive.Extract
	files     []string
	downloads map[string]int
	sent      map[string]bool // whole
	hidden    bool            // from lists
	gone      bool
	acked     int
	added     bool // one more file comes once the others were downloaded
	denied    bool // its files are not shown
}

func newService(t testing.TB) *service {
	return &service{t: t, have: map[archive.ExtractID]*kept{}, whole: true}
}

func (s *service) add(id archive.ExtractID, files ...string) *kept {
	k := &kept{Extract: archive.Extract{ID: id, Type: archive.DeltaExtract, Made: time.Now().Add(-time.Hour), Files: len(files)}, files: files,
		downloads: map[string]int{}, sent: map[string]bool{}}
	s.have[id], s.order = k, append(s.order, id)
	return k
}

// call makes a call with its faults: one that was not made, and one that was made and failed all the same.
func (s *service) call(op string, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var before, after error
	if s.fault != nil {
		before, after = s.fault(op)
	}
	if before != nil {
		return before
	}
	return errors.Join(do(), after)
}

func status(code int) error {
	return &apicall.Error{Status: code, Sent: true, Outcome: apicall.NotProcessed, Code: fmt.Sprint("http-", code), Text: fmt.Sprint("answered ", code),
		Denied: code == 401 || code == 403}
}

var errCut = &apicall.Error{Sent: true, Code: "connection", Text: "the connection was cut"}

func (s *service) List(_ context.Context, status string) (list archive.ExtractList, err error) {
	err = s.call("list", func() error {
		list.Whole = s.whole
		for _, id := range s.order {
			if k := s.have[id]; k.hidden == (status == archive.ExportedStatus) && !k.gone {
				list.Extracts = append(list.Extracts, k.Extract)
			}
		}
		return nil
	})
	return list, err
}

func (s *service) Files(_ context.Context, id archive.ExtractID) (files []archive.ExtractFile, err error) {
	err = s.call("files", func() error {
		k := s.have[id]
		if k == nil || k.gone {
			return status(404)
		}
		if k.denied {
			return status(403)
		}
		if k.added && len(k.sent) == len(k.files) {
			k.added, k.files = false, append(k.files, "added")
		}
		for _, name := range k.files {
			files = append(files, archive.ExtractFile{Extract: id, Table: "IA_INVOICE", Name: name, URL: "https://service.example/secret"})
		}
		return nil
	})
	return files, err
}

func content(name string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name + ".json")
	if err == nil {
		_, err = io.WriteString(w, `[{"n":1}]`)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func (s *service) Download(ctx context.Context, f archive.ExtractFile, w io.Writer) (n int64, err error) {
	s.mu.Lock()
	s.atOnce++
	s.most = max(s.most, s.atOnce)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.atOnce--; s.mu.Unlock() }()
	err = s.call("download", func() error {
		k := s.have[f.Extract]
		if k.downloads[f.Name]++; k.downloads[f.Name] > arrival.ServiceLimit {
			s.t.Errorf("%d downloads of %s, want at most %d", k.downloads[f.Name], f.Name, arrival.ServiceLimit)
		}
		b := content(f.Name)
		written, err := w.Write(b)
		if n = int64(written); err != nil {
			return &apicall.Error{Code: "local", Text: err.Error(), Err: err}
		}
		k.sent[f.Name] = true
		return nil
	})
	<-time.After(time.Second + s.takes) // of the bubble: downloads overlap once their first byte is here
	return n, err
}

func (s *service) Definition(context.Context) (d archive.TableDefinition, err error) {
	err = s.call("definition", func() error {
		d.Raw = fmt.Appendf(nil, `[{"Table name":"IA_INVOICE","change":%d}]`, s.changed)
		return nil
	})
	return d, err
}

func (s *service) Acknowledge(_ context.Context, id archive.ExtractID, _ string) error {
	return s.call("acknowledge", func() error {
		k := s.have[id]
		for _, name := range k.files {
			kit.Check(s.t, k.sent[name], "extract %s is acknowledged, want %s sent whole before", id, name)
		}
		if s.beforeAcknowledge != nil {
			s.beforeAcknowledge(id)
		}
		k.acked++
		k.hidden = true
		return nil
	})
}

// client is a service of the real kind.
type client interface {
	ExtractService
	Acknowledger
}

// house is a ledger and a custody on a real disk, which outlive the lives of the engine.
type house struct {
	t                   testing.TB
	state, kept         string
	svc                 *service
	real                client // asked in place of svc; nil: svc is
	hosts               string // digest of the allowed hosts
	acknowledge, noRoom bool
	held                bool         // safe mode
	into                string       // the drop folder that files are put into; may be empty
	puts                atomic.Int32 // folders that were to be put there
	away                error        // why it cannot be worked in
	commitFault         func(op string) error
	fileFault           func(op, name string, do func() error) error
}

func newHouse(t testing.TB) *house {
	h := &house{t: t, state: t.TempDir(), kept: t.TempDir(), svc: newService(t), acknowledge: true}
	kit.Must(t, boltledger.Create(h.state, ledger.Info{ID: "ledger-1", Environment: "test", BaseURL: "https://archive.example", Created: time.Now()}))
	return h
}

// inHouse runs a test with a house in a bubble.
func inHouse(t *testing.T, test func(*testing.T, *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newHouse(t)) })
}

// live runs the engine for so long, and returns its error.
func (h *house) live(d time.Duration) (err error) {
	h.t.Helper()
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: h.state, Fault: h.commitFault}))(h.t)
	defer func() { _ = l.Close() }()
	c, err := custody.Open(h.kept, "ledger-1", "test", h.fileFault)
	if err != nil {
		return err
	}
	defer c.Close()
	booted := time.Now()
	cfg := Extracts{Ledger: l, Service: h.svc, Custody: c, Every: time.Hour, MaxDownloads: 3, Hosts: h.hosts, Config: Config{Workers: 2, Log: slog.New(slog.DiscardHandler),
		Now: func() archive.Instant { return archive.Instant{Wall: time.Now(), Boot: time.Since(booted)} }, IsHeld: func() bool { return h.held },
		Room: func() error {
			if h.noRoom {
				return errors.New("the disk is nearly full")
			}
			return nil
		}}}
	if h.acknowledge {
		cfg.Acknowledger = h.svc
	}
	if h.into != "" {
		d, err := drop.Open(drop.Config{Path: h.into, Name: "extracts", LedgerID: "ledger-1", Environment: "test", Epoch: 1, Hook: h.fileFault})
		if err != nil {
			return err
		}
		defer d.Close()
		cfg.HandOn = &HandOn{Drop: putter{h, d}, DocumentType: "Invoice", LedgerID: "ledger-1"}
	}
	if h.real != nil {
		cfg.Service, cfg.Acknowledger = h.real, h.real
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), d)
	defer cancel()
	return NewExtracts(cfg).Run(ctx)
}

// look calls fn with the ledger between two lives, after everything was checked: records, chain, history, custody.
func (h *house) look(fn func(l *boltledger.Ledger)) {
	h.t.Helper()
	l, all := fill.Checked(h.t, h.state)
	defer l.Close()
	h.holdAgainst(all)
	if fn != nil {
		fn(l)
	}
}

// holdAgainst holds the arrivals against the service and the custody.
func (h *house) holdAgainst(all []arrival.Arrival) {
	h.t.Helper()
	c := kit.Value(custody.Open(h.kept, "ledger-1", "test", nil))(h.t)
	defer c.Close()
	for _, a := range all {
		if !a.HandedOnAt.IsZero() {
			h.wantInDrop(a)
		}
		k := h.svc.have[a.Item]
		if k == nil { // the emulator judges itself
			continue
		}
		for _, f := range a.Files {
			if n := k.downloads[f.Name]; n > int(f.Downloads) && !a.UnknownPast {
				h.t.Errorf("extract %s: downloads of %s = %d, want at least the %d that the service counted", a.Item, f.Name, f.Downloads, n)
			}
		}
		if a.State != arrival.Held && a.State != arrival.Acknowledged && k.acked == 0 || !a.LostAt.IsZero() {
			continue
		}
		if k.gone {
			continue // it may have been moved away
		}
		m, err := c.Find(a.Item)
		if err == nil {
			err = c.Verify(h.t.Context(), m)
		}
		if err != nil || len(m.Files) != len(k.files) {
			h.t.Errorf("extract %s is %s, acknowledged %d times, and custody has %d of %d files (error %v), want all", a.Item, a.State, k.acked, len(m.Files), len(k.files), err)
		}
	}
}

func (h *house) want(id archive.ExtractID, state arrival.State) (a arrival.Arrival) {
	h.t.Helper()
	h.look(func(l *boltledger.Ledger) {
		var err error
		if a, _, err = l.FindArrival(arrival.Extract, id); err != nil || a.State != state {
			h.t.Errorf("extract %s is %s (%s, %v), want %s", id, a.State, a.Cause, err, state)
		}
	})
	return a
}

func TestIntake_TakesIn(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		for i := range 5 {
			h.svc.add(archive.ExtractID(fmt.Sprint("47", i)), "a", "b", "c")
		}
		kit.Must(t, h.live(30*time.Minute))
		for _, id := range h.svc.order {
			h.want(id, arrival.Acknowledged)
			if k := h.svc.have[id]; k.acked != 1 || k.downloads["a"] != 1 {
				t.Errorf("acknowledged %d times, downloads = %v, want each once", k.acked, k.downloads)
			}
		}
		kit.Want(t, "downloads at once", h.svc.most, mostWorkers)
	})
}

// Without a leave to acknowledge nothing is hidden from other programs: held is the end.
func TestIntake_I30_HeldIsTheEndWithoutLeave(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.acknowledge = false
		h.svc.add("4711", "a")
		_ = h.live(3 * time.Hour)
		h.want("4711", arrival.Held)
		kit.Want(t, "acknowledged", h.svc.have["4711"].acked, 0)
		h.acknowledge = true // a person changed the configuration
		_ = h.live(time.Hour)
		h.want("4711", arrival.Acknowledged)
	})
}

// A file that is added while the others come is seen by the list that is asked for again.
func TestIntake_I30_AddedFile(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.svc.add("4711", "a", "b").added = true
		_ = h.live(time.Hour)
		kit.Want(t, "files", len(h.want("4711", arrival.Acknowledged).Files), 3)
	})
}

// A service that says more files than it lists keeps the extract from being held, and is not asked all the time.
func TestIntake_I30_TooFewFiles(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		k := h.svc.add("4711", "a", "b")
		k.Files = 3
		asked := 0
		h.svc.fault = func(op string) (error, error) {
			if op == "files" {
				asked++
			}
			return nil, nil
		}
		_ = h.live(time.Minute) // what is listed is fetched at once
		a := h.want("4711", arrival.Fetching)
		kit.Check(t, a.Files[0].IsHeld() && a.Files[1].IsHeld(), "files = %+v, want both held", a.Files)
		_ = h.live(24 * time.Hour)
		if a := h.want("4711", arrival.Fetching); a.Cause.Code != causeFilesUnclear || asked > 60 || a.Rev > 20 {
			t.Errorf("cause = %v, asked %d times, %d revisions, want %s, at most 60 and 20", a.Cause, asked, a.Rev, causeFilesUnclear)
		}
		k.files = append(k.files, "c")
		_ = h.live(time.Hour)
		h.want("4711", arrival.Acknowledged)
	})
}

// A download that never comes whole stops at the limit for a person, who may allow as many again.
func TestIntake_I11_DownloadsUsed(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.svc.add("4711", "a")
		cuts := 3
		h.svc.fault = func(op string) (error, error) {
			if op == "download" && cuts > 0 {
				cuts--
				return nil, errCut
			}
			return nil, nil
		}
		_ = h.live(10 * time.Hour)
		a := h.want("4711", arrival.Fetching)
		if n := h.svc.have["4711"].downloads["a"]; n != 3 || a.MostDownloads() != 3 {
			t.Errorf("%d downloads, the ledger counts %d, want 3, 3", n, a.MostDownloads())
		}
		h.look(func(l *boltledger.Ledger) {
			ev := arrival.Allowed{By: ledger.Operator{UID: 7}}
			if _, err := l.ApplyArrival(t.Context(), arrival.Change{Key: a.Key, Rev: a.Rev, Events: []arrival.Event{ev}, At: archive.Instant{Wall: time.Now()}}); err != nil {
				t.Error(err)
			}
		})
		_ = h.live(2 * time.Hour)
		h.want("4711", arrival.Acknowledged)
	})
}

// I11: the list leaves an extract out while a file of it is being downloaded. The file
// is held, and is not downloaded again.
func TestIntake_I11_LeftOutDuringADownload(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.svc.add("4711", "a")
		h.svc.takes = 90 * time.Minute // a list is taken each hour
		h.svc.fault = func(op string) (error, error) {
			if op == "download" {
				h.svc.order = nil
			}
			return nil, nil
		}
		kit.Must(t, h.live(10*time.Hour))
		a := h.want("4711", arrival.Acknowledged)
		kit.Check(t, a.Gone, "the extract was never left out, want it to be: the test shows nothing")
		kit.Want(t, "downloads of its file", h.svc.have["4711"].downloads["a"], 1)
	})
}

// Missing rights pause and end nothing, also for an extract that the list leaves out.
func TestIntake_I24_Denied(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		k := h.svc.add("4711", "a")
		denied := ""
		asked := 0
		h.svc.fault = func(op string) (error, error) {
			if asked++; op == denied {
				return status(403), nil
			}
			return nil, nil
		}
		for _, denied = range []string{"list", "files"} {
			asked = 0
			_ = h.live(5 * time.Hour)
			kit.Check(t, asked <= 30, "%s: asked %d times in five hours, want at most 30", denied, asked)
		}
		k.hidden = true // another one acknowledged it
		_ = h.live(3 * time.Hour)
		a := h.want("4711", arrival.Announced)
		kit.Check(t, a.Gone, "the extract does not count as gone, want it: the list leaves it out")
		denied = ""
		_ = h.live(2 * time.Hour)
		h.want("4711", arrival.Acknowledged)
	})
}

// I25: extracts that are denied are the fault of no other one. What comes after them is taken in.
func TestIntake_I25_OtherExtractsAreDenied(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		for n := range 60 { // more than are tried in the longest wait of one
			h.svc.add(archive.ExtractID(fmt.Sprint("denied-", n)), "a").denied = true
		}
		for n := range 10 {
			time.AfterFunc(24*time.Hour+time.Duration(n)*7*time.Minute, func() {
				h.svc.mu.Lock()
				defer h.svc.mu.Unlock()
				h.svc.add(archive.ExtractID(fmt.Sprint("later-", n)), "a")
			})
		}
		_ = h.live(27 * time.Hour)
		for n := range 10 {
			h.want(archive.ExtractID(fmt.Sprint("later-", n)), arrival.Acknowledged)
		}
	})
}

// Only a whole list and the service's own word for the number give an extract up.
func TestIntake_I32_GivenUp(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.noRoom = true
		k := h.svc.add("4711", "a")
		_ = h.live(time.Hour)
		k.gone = true
		h.svc.whole = false
		_ = h.live(3 * time.Hour)
		h.want("4711", arrival.Fetching)
		h.svc.whole = true
		_ = h.live(3 * time.Hour)
		kit.Want(t, "the cause", h.want("4711", arrival.GivenUp).Cause.Code, causeGone)
	})
}

// A full disk costs no download, and in safe mode nothing is downloaded or acknowledged.
func TestIntake_NoRoomAndSafeMode(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.noRoom = true
		k := h.svc.add("4711", "a")
		_ = h.live(5 * time.Hour)
		h.noRoom, h.held = false, true
		_ = h.live(5 * time.Hour)
		if a := h.want("4711", arrival.Fetching); a.MostDownloads() != 0 || k.downloads["a"] != 0 {
			t.Errorf("%d downloads, the service counted %d, want 0, 0", a.MostDownloads(), k.downloads["a"])
		}
		h.held = false
		_ = h.live(time.Hour)
		h.want("4711", arrival.Acknowledged)
	})
}

// A ledger that was made anew adopts what custody holds, and asks no file of it again. What is not held is downloaded once, not as often
// as if nothing had been.
func TestIntake_I15_RebuiltLedger(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.acknowledge = false
		one, two := h.svc.add("4711", "a", "b"), h.svc.add("4712", "c")
		h.svc.fault = func(op string) (error, error) {
			if op == "download" && one.downloads["b"] > 0 {
				return nil, errCut
			}
			return nil, nil
		}
		_ = h.live(2 * time.Hour)
		h.want("4711", arrival.Held)
		// The ledger is lost; another one of the same number takes its place, and says that it was made anew.
		h.state = t.TempDir()
		kit.Must(t, boltledger.Create(h.state, ledger.Info{ID: "ledger-1", Environment: "test", BaseURL: "https://archive.example", Created: time.Now()}))
		h.look(func(l *boltledger.Ledger) {
			kit.Must(t, l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkRebuilt, At: time.Now()}, nil))
		})
		before := one.downloads["a"]
		h.acknowledge = true
		_ = h.live(3 * time.Hour)
		h.want("4711", arrival.Acknowledged)
		kit.Want(t, "downloads of what custody holds", one.downloads["a"], before)
		if two.acked == 0 {
			a := h.want("4712", arrival.Fetching)
			kit.Check(t, a.UnknownPast, "arrival = %+v, want its past unknown", a)
		}
	})
}

// allowMore is what a person does who finds that all allowed downloads of a file failed.
func (h *house) allowMore() {
	h.t.Helper()
	h.look(func(l *boltledger.Ledger) {
		err := l.Arrivals(func(a arrival.Arrival) error {
			if step, _, _ := arrival.Due(a, arrival.Rules{MaxDownloads: 3}); step != arrival.Person {
				return nil
			}
			ev := arrival.Allowed{By: ledger.Operator{UID: 7}}
			_, err := l.ApplyArrival(h.t.Context(), arrival.Change{Key: a.Key, Rev: a.Rev, Events: []arrival.Event{ev}, At: archive.Instant{Wall: time.Now()}})
			return err
		}, arrival.Fetching)
		kit.Want(h.t, "the error", err, nil)
	})
}

// I30: an extract whose folder custody has lost is fetched again while the
// service has it, also after it was acknowledged, which hides it from lists. No
// count goes back, and it is acknowledged once. If the service does not have it
// any more, an operator is asked, and a folder that comes back is adopted.
func TestIntake_I30_LostCustody(t *testing.T) {
	lose := map[string]func(h *house){
		"Folder":   func(h *house) { kit.Must(t, os.RemoveAll(filepath.Join(h.kept, "extracts", "4711"))) },
		"OneFile":  func(h *house) { kit.Must(t, os.Remove(filepath.Join(h.kept, "extracts", "4711", "files", "0002-b"))) },
		"Manifest": func(h *house) { kit.Must(t, os.Remove(filepath.Join(h.kept, "extracts", "4711", "manifest.json"))) },
	}
	for name, do := range lose {
		for _, acknowledge := range []bool{true, false} {
			kit.Bubble(t, fmt.Sprint(name, acknowledge), func(t *testing.T) {
				h, end := newHouse(t), arrival.Acknowledged
				if h.acknowledge = acknowledge; !acknowledge {
					end = arrival.Held
				}
				k := h.svc.add("4711", "a", "b")
				kit.Must(t, h.live(10*time.Minute))
				had := h.want("4711", end)
				do(h)
				kit.Must(t, h.live(2*time.Hour))
				a := h.want("4711", end)
				if a.Files[1].SHA256 != had.Files[1].SHA256 || a.Files[0].Downloads != 2 || k.downloads["a"] != 2 || acknowledge && k.acked != 1 {
					t.Errorf("files %+v, %v downloads, acknowledged %d times; want two downloads of each, one acknowledgement", a.Files, k.downloads, k.acked)
				}
			})
		}
	}
	inHouse(t, func(t *testing.T, h *house) {
		k := h.svc.add("4711", "a", "b")
		kit.Must(t, h.live(10*time.Minute))
		folder, copied := filepath.Join(h.kept, "extracts", "4711"), filepath.Join(t.TempDir(), "copy")
		kit.Must(t, os.Rename(folder, copied))
		k.gone = true
		kit.Must(t, h.live(4*time.Hour))
		kit.Want(t, "cause", h.want("4711", arrival.GivenUp).Cause.Code, CauseCustodyLost)
		kit.Must(t, os.Rename(copied, folder))
		kit.Must(t, h.live(2*time.Hour))
		h.want("4711", arrival.Acknowledged)
	})
}

// I30: where custody as a whole is not there, nothing of it is called lost, and
// what is older than the service keeps may be moved away.
func TestIntake_I30_NotLost(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		k := h.svc.add("4711", "a")
		kit.Must(t, h.live(10*time.Minute))
		time.Sleep(366 * 24 * time.Hour)
		k.gone = true
		kit.Must(t, os.RemoveAll(filepath.Join(h.kept, "extracts", "4711")))
		kit.Must(t, h.live(2*time.Hour))
		h.look(func(l *boltledger.Ledger) {
			if a, _, err := l.FindArrival(arrival.Extract, "4711"); err != nil || a.State != arrival.Acknowledged || !a.LostAt.IsZero() {
				t.Errorf("%s, %v, want it acknowledged", a.State, err)
			}
		})
	})
}
