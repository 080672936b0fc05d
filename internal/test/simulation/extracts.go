package simulation

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/extractapi"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
)

// Extracts says how a world takes extracts in. The zero value is not at all.
type Extracts struct {
	Every        time.Duration // between two lists; 0: no extracts are taken in
	Acknowledges bool
	OwnAccount   bool // credentials of its own
	Workers      int
	MaxDownloads uint16
}

var extractAccount = emulator.Account{Name: "books", Secret: "secret of books"}

// addExtracts configures the intake of extracts.
func (w *World) addExtracts(cfg *daemon.Config, api *apicall.API) {
	w.t.Helper()
	x := w.cfg.Extracts
	if x.Every == 0 {
		return
	}
	auth := apicall.Auth{Method: apicall.Basic, Username: "vaultd", Secret: func() (string, error) { return "secret", nil }}
	if x.OwnAccount {
		auth.Username, auth.Secret = extractAccount.Name, func() (string, error) { return extractAccount.Secret, nil }
	}
	if w.cfg.OAuth {
		auth.Method, auth.Scopes = apicall.OAuth2, []string{extractapi.ReadScope, extractapi.WriteScope}
	}
	own, err := api.WithAuth(auth)
	w.failOn(err)
	client := extractapi.New(own)
	cfg.Extracts = &daemon.Extracts{Service: client, Custody: w.custodyPath(), Every: x.Every, Workers: x.Workers, MaxDownloads: x.MaxDownloads}
	if x.Acknowledges {
		cfg.Extracts.Acknowledger = client
	}
}

func (w *World) custodyPath() string { return filepath.Join(w.dir, "custody") }

// PublishExtract makes the service offer the n-th extract of the world's seed. Some say that they have more files than they have, and get the
// others later, and some that they have fewer. Days between two of them may be missing.
func (w *World) PublishExtract(n int) {
	w.t.Helper()
	r := rand.New(rand.NewPCG(w.cfg.Seed, uint64(n)<<40))
	now := w.clock.serviceTime().UTC().Truncate(time.Second)
	x := emulator.PublishedExtract{ID: extractID(n), Type: archive.DeltaExtract, Name: "books", End: now.AddDate(0, 0, -r.IntN(3)), Made: now}
	x.Start = x.End.AddDate(0, 0, -1)
	files := 1 + r.IntN(4)
	for i := range files {
		x.Files = append(x.Files, w.makeExtractFile(r, n, i))
	}
	switch r.IntN(5) {
	case 0:
		x.ToldFiles = files + 1
	case 1:
		x.ToldFiles = max(1, files-1)
	}
	w.failOn(w.emulator.SetTableDefinition(fmt.Appendf(nil, `[{"Table name":"IA_INVOICE","Columns":[{"Column name":"NUMBER"},{"Column name":"C%d"}]}]`, r.IntN(3))))
	w.failOn(w.emulator.PublishExtract(x))
	w.toldFiles[x.ID] = x.ToldFiles
}

func extractID(n int) string { return fmt.Sprintf("extract-%d", n) }

// makeExtractFile makes a file whose name does not look like that of a package.
func (w *World) makeExtractFile(r *rand.Rand, n, i int) emulator.PublishedFile {
	w.t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	entry, err := z.Create("rows.json")
	w.failOn(err)
	_, err = entry.Write(drawContent(r, 1+r.IntN(3000)))
	w.failOn(err)
	w.failOn(z.Close())
	return emulator.PublishedFile{Table: "IA_INVOICE", Name: fmt.Sprintf("IA_INVOICE_%d_%d", n, i), Content: b.Bytes()}
}

// AddExtractFile adds a file to the n-th extract, where it is there and one of
// its files was not sent yet. If all were sent, nobody could know of another
// one.
func (w *World) AddExtractFile(n int) {
	w.t.Helper()
	all := w.emulator.PublishedExtracts()
	at := slices.IndexFunc(all, func(x emulator.Extract) bool { return x.ID == extractID(n) })
	if at < 0 {
		return
	}
	x := all[at]
	if isAwaited := len(x.Files) < w.toldFiles[x.ID]; !isAwaited && !slices.ContainsFunc(x.Files, func(f emulator.ExtractFile) bool { return !f.WasSent }) {
		return
	}
	r := rand.New(rand.NewPCG(w.cfg.Seed, uint64(n)<<40+uint64(len(x.Files))))
	w.failOn(w.emulator.PublishExtract(emulator.PublishedExtract{ID: x.ID, ToldFiles: w.toldFiles[x.ID], Files: []emulator.PublishedFile{w.makeExtractFile(r, n, len(x.Files))}}))
}

// completeExtracts adds what was promised, so that everything can end.
func (w *World) completeExtracts() {
	w.t.Helper()
	for _, x := range w.emulator.PublishedExtracts() {
		for n := len(x.Files); n < w.toldFiles[x.ID]; n++ {
			var number int
			_, err := fmt.Sscanf(x.ID, "extract-%d", &number)
			w.failOn(err)
			w.AddExtractFile(number)
		}
	}
}

// rules are those by which the daemon works.
func (x Extracts) rules() arrival.Rules {
	return arrival.Rules{Acknowledge: x.Acknowledges, MaxDownloads: x.MaxDownloads}
}

// allowDownloads is what the administrator does who finds that all downloads of a file failed that are allowed without a person.
func (w *World) allowDownloads(ctx context.Context) {
	w.t.Helper()
	var waiting []arrival.Arrival
	w.failOn(w.d.Ledger().Arrivals(func(a arrival.Arrival) error {
		if step, _, _ := arrival.Due(a, w.cfg.Extracts.rules()); step == arrival.Person {
			waiting = append(waiting, a)
		}
		return nil
	}, arrival.Fetching))
	for _, a := range waiting {
		_, err := w.d.Ledger().ApplyArrival(ctx, arrival.Change{Key: a.Key, Rev: a.Rev, At: w.clock.machineTime(), Events: []arrival.Event{arrival.Allowed{By: ledger.Operator{UID: administrator.UID}}}})
		w.log.newLogger().Info("the administrator allowed more downloads", "extract", a.Item, "err", err)
	}
}

// listArrivals returns all arrivals of a ledger.
func (w *World) listArrivals(l *boltledger.Ledger) (all []arrival.Arrival) {
	w.t.Helper()
	w.failOn(l.Arrivals(func(a arrival.Arrival) error {
		all = append(all, a)
		return nil
	}, arrival.States()...))
	return all
}

// findOpenExtracts names the extracts that are not held, and those that are not acknowledged and are to be.
func (w *World) findOpenExtracts(all []arrival.Arrival) (left []string) {
	w.t.Helper()
	if w.cfg.Extracts.Every == 0 {
		return nil
	}
	for _, x := range w.emulator.PublishedExtracts() {
		i := slices.IndexFunc(all, func(a arrival.Arrival) bool { return string(a.Item) == x.ID })
		switch {
		case i < 0:
			left = append(left, fmt.Sprintf("%s was not announced", x.ID))
		case all[i].State != arrival.Acknowledged && (all[i].State != arrival.Held || w.cfg.Extracts.Acknowledges):
			left = append(left, fmt.Sprintf("%s is %s since attempt %d (%s), not before %v", x.ID, all[i].State, all[i].Attempt, all[i].Cause, all[i].NotBefore))
		}
	}
	return left
}

// checkExtracts holds the custody to what the service has: what is acknowledged there is held whole, in the bytes that the service has, and no
// file was downloaded more often than the ledger knows and the limit allows.
func (w *World) checkExtracts(l *boltledger.Ledger) (problems []string) {
	w.t.Helper()
	if w.cfg.Extracts.Every == 0 {
		return nil
	}
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	info := l.Info()
	c, err := custody.Open(w.custodyPath(), info.ID, info.Environment, nil)
	w.failOn(err)
	defer c.Close()
	known := w.listArrivals(l)
	for _, x := range w.emulator.PublishedExtracts() {
		i := slices.IndexFunc(known, func(a arrival.Arrival) bool { return string(a.Item) == x.ID })
		isHeld := i >= 0 && (known[i].State == arrival.Held || known[i].State == arrival.Acknowledged)
		if x.IsAcknowledged || isHeld {
			for _, p := range w.compareCustody(c, x) {
				say("%s", p)
			}
		}
		for _, f := range x.Files {
			if f.Downloads > arrival.ServiceLimit {
				say("I9: %s of %s was downloaded %d times", f.Name, x.ID, f.Downloads)
			}
			if i < 0 || w.setBacks > 0 {
				continue // what it forgot it cannot count
			}
			at := slices.IndexFunc(known[i].Files, func(had arrival.File) bool { return had.Name == f.Name })
			if own := int(w.cfg.Extracts.MaxDownloads + known[i].Allowed); f.Downloads > 0 && (at < 0 || f.Downloads > int(known[i].Files[at].Downloads) || f.Downloads > own) {
				say("I11: the service counted %d downloads of %s of %s, where %d were allowed; the ledger says %+v", f.Downloads, f.Name, x.ID, own, known[i].Files)
			}
		}
	}
	return problems
}

// compareCustody compares what is held of an extract with what the service has.
func (w *World) compareCustody(c *custody.Custody, x emulator.Extract) (problems []string) {
	w.t.Helper()
	m, err := c.Find(archive.ExtractID(x.ID))
	if err == nil {
		err = c.Verify(context.Background(), m)
	}
	if err != nil {
		return []string{fmt.Sprintf("I30: %s is held or acknowledged, and not whole in custody: %v", x.ID, err)}
	}
	for _, f := range x.Files {
		if !slices.ContainsFunc(m.Files, func(had custody.HeldFile) bool { return had.Name == f.Name && had.SHA256.String() == f.SHA256 }) {
			problems = append(problems, fmt.Sprintf("I30: %s of %s is not in custody as the service has it", f.Name, x.ID))
		}
	}
	return problems
}
