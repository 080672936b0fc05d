package simulation

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
)

// scenario is all that a seed decides: the world, what is dropped into it, what goes
// wrong. It is drawn as a whole before anything runs, so that parts of it can be left out.
type scenario struct {
	Seed      uint64
	OAuth     bool
	Accounts  bool // each vault but the first has credentials of its own
	Readings  emulator.Readings
	Archiving time.Duration // at most
	Workers   int
	Batch     int
	Rescan    time.Duration
	Poll      time.Duration // between two questions about one document, at first
	Sleep     time.Duration // between two looks at what is due
	Settle    time.Duration
	Disposal  []disposal // of each vault
	PDFs      PDFs
	Extracts  Extracts
	Network   Network
	Outcomes  []emulator.OutcomeRate // of documents of the network
	Rejecting time.Duration          // from the delivery of one to a late rejection
	Careful   bool                   // whoever decides on PDFs of which nobody knows whether they were delivered looks first
	Drops     []dropping             // in time's order
	Mishaps   []mishap               // in time's order
	Mix       []rated
}

// disposal is what becomes of the archived sources of a vault.
type disposal struct {
	Disposes, Moves bool
	Grace           time.Duration
}

// dropping is one folder that somebody drops.
type dropping struct {
	At    time.Duration
	Drop  int // those of the vaults come first, then those of single PDFs, then those for the network
	N     int // of Make
	Is    Nature
	Again int // how many times it was dropped before, under other names
	Named int // of a PDF: it bears the name of another one, as scanners that count from 1 each day do; 0: its own
}

// mishap is what happens to the machine.
type mishap struct {
	At   time.Duration
	What string
	Drop int
	For  time.Duration
}

const (
	faultHours = 72 * time.Hour
	dropHours  = 60 * time.Hour
	mostDrops  = 200
)

// drawScenario draws the scenario of a seed.
func drawScenario(seed uint64) scenario {
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	s := scenario{Seed: seed, OAuth: r.IntN(2) == 0, Readings: emulator.Readings{
		URLForm: pick("object", "string", "headers", "fields"), InOrder: r.IntN(2) == 0, Repeat: pick("new", "new", "refuse", "same"),
		LatePackage: pick("archive", "ignore"), BadCredentials: 401 + 2*r.IntN(2), BasicEncoding: pick("raw", "rfc6749"),
		ErrorBody:        pick("message", "Message", "detail", "detail-list", "error", "oauth", "service", "network", "wrapped", "xml", "empty", "html"),
		NumbersAsStrings: r.IntN(2) == 0, InProgressWord: pick("", "", "ArchivingQueued"), ETag: pick("md5", "kms", "none"),
		Download: pick("bytes", "redirect", "json"), VaultList: pick("objects", "ids", "wrapped"), RedirectTo: pick("", "", "same"),
	}}
	careless := rand.New(rand.NewPCG(seed, 1)) // its own draws: they change no other
	s.Readings.ContentMD5 = []string{"check", "ignore"}[careless.IntN(2)]
	s.Readings.ShortBody = []string{"refuse", "keep"}[careless.IntN(2)]
	s.Archiving = upTo(r, 5*time.Hour)
	s.Workers, s.Batch = 1+r.IntN(8), 1+r.IntN(50)
	s.Settle = time.Duration(math.Exp(r.Float64()*5)) * time.Second
	s.Poll = time.Minute + upTo(r, 20*time.Minute)
	s.Rescan, s.Sleep = 5*time.Minute+upTo(r, 55*time.Minute), time.Minute+upTo(r, 14*time.Minute)
	for range 1 + r.IntN(4)*r.IntN(2) {
		s.Disposal = append(s.Disposal, disposal{r.IntN(3) > 0, r.IntN(2) == 0, upTo(r, 24*time.Hour)})
	}
	unknown := rand.New(rand.NewPCG(seed, 3)) // its own draws: they change no other
	s.Readings.UnknownBumID = []int{404, 400, 422, 502}[unknown.IntN(4)]
	index := rand.New(rand.NewPCG(seed, 1)) // what it draws changes nothing else
	s.Readings.IndexFound = []string{"all", "all", "none", "negative", "left"}[index.IntN(5)]
	s.Readings.IndexPage = index.IntN(2) * (1 + index.IntN(5))
	vaults := rand.New(rand.NewPCG(seed, 0x7661756c74)) // what it draws changes nothing else
	s.Accounts = vaults.IntN(2) == 0
	s.Readings.StatusList = []string{"registered", "uploaded"}[vaults.IntN(2)]
	s.Readings.IndexFields = []string{"sent", "filled"}[vaults.IntN(2)]
	s.Mix = drawMix(r, 0, firstPDF)
	s.drawDrops(r)
	s.drawMishaps(r)
	s.drawMounts(rand.New(rand.NewPCG(seed, 0x6d6f756e74))) // dice of their own: they change nothing else
	s.Readings.KeyInQuery = r.IntN(3) == 0
	s.Readings.TwinFields = r.IntN(2) == 0
	s.Readings.ListAge = time.Duration(r.IntN(2)) * upTo(r, 40*time.Minute)
	s.Readings.BumIDCase = pick("small", "capital", "mixed")
	s.drawPDFs(rand.New(rand.NewPCG(seed, 0x706466)))             // dice of their own: worlds without PDFs stay as they are
	s.drawExtracts(rand.New(rand.NewPCG(seed, 0x65787472616374))) // and those without extracts
	s.drawNetwork(rand.New(rand.NewPCG(seed, 0x6e6574776f726b)))  // and those without the network
	return s
}

// drawDrops draws few folders often and many seldom, in bursts or one by one.
func (s *scenario) drawDrops(r *rand.Rand) {
	n := int(math.Ceil(math.Pow(mostDrops, math.Pow(r.Float64(), 3))))
	bursts := 1 + r.IntN(n)
	var at []time.Duration
	for range bursts {
		at = append(at, upTo(r, dropHours))
	}
	again := map[int]int{}
	for i := range n {
		d := dropping{At: at[r.IntN(bursts)], Drop: r.IntN(len(s.Disposal)), N: i}
		switch p := r.IntN(100); {
		case p < 8 && i > 0:
			first := s.Drops[r.IntN(len(s.Drops))]
			again[first.N]++
			d.N, d.Is, d.Drop, d.Again = first.N, first.Is, first.Drop, again[first.N]
		case p < 14:
			d.Is = Faulty
		case p < 18:
			d.Is = Hostile
		case p < 24 && s.Readings.Repeat != "same": // there, what failed once fails for ever under its number
			d.Is = FailsOnce
		case p < 25 && s.Readings.Repeat != "same":
			d.Is = Fails
		}
		s.Drops = append(s.Drops, d)
	}
	slices.SortStableFunc(s.Drops, func(a, b dropping) int { return cmp.Compare(a.At, b.At) })
}

// drawMishaps draws which kinds of mishap there are, and how often each comes.
func (s *scenario) drawMishaps(r *rand.Rand) {
	for _, what := range []string{"restart", "kill", "reboot", "suspend", "clock wrong", "clock right", "vanish", "replace", "set back"} {
		on, times := r.IntN(2) == 0, int(math.Pow(6, r.Float64()))
		switch {
		case what == "kill":
			on = true
		case what == "set back" && os.Getenv("SETBACK") == "": // the last one: what it draws changes no other
			on = on && r.IntN(3) == 0
		}
		for range times {
			m := mishap{At: upTo(r, faultHours), What: what, Drop: r.IntN(len(s.Disposal)), For: upTo(r, 3*time.Hour)}
			if r.IntN(8) == 0 {
				m.For *= 24
			}
			if r.IntN(2) == 0 && what == "clock wrong" {
				m.For = -m.For
			}
			if on {
				s.Mishaps = append(s.Mishaps, m)
			}
		}
	}
	slices.SortStableFunc(s.Mishaps, func(a, b mishap) int { return cmp.Compare(a.At, b.At) })
}

// drawMounts draws when something is mounted on a folder, in every second scenario.
func (s *scenario) drawMounts(r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	for range 1 + r.IntN(4) {
		s.Mishaps = append(s.Mishaps, mishap{At: upTo(r, faultHours), What: "mount", Drop: r.IntN(len(s.Disposal)), For: upTo(r, 12*time.Hour)})
	}
	slices.SortStableFunc(s.Mishaps, func(a, b mishap) int { return cmp.Compare(a.At, b.At) })
}

// drawPDFs draws drops of single PDFs, in every second scenario, with what is dropped there, what goes wrong and what people decide.
func (s *scenario) drawPDFs(r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	s.PDFs = PDFs{RepeatsPut: r.IntN(3) == 0, OwnAccount: r.IntN(2) == 0, Workers: 1 + r.IntN(4), Settle: s.Settle, Rescan: s.Rescan}
	s.Careful = r.IntN(2) == 0
	for range 1 + r.IntN(2) {
		s.PDFs.Drops = append(s.PDFs.Drops, PDFDrop{Receiving: pick("ap@in.example", "ap@in.example", "AP-2@in.example"), SendsSame: r.IntN(3) == 0})
	}
	s.Readings.PDF = emulator.PDFReadings{URLForm: pick("uploadUrl", "url", "object"), BumID: pick("told", "told", "none"), Validity: pick("told", "untold"),
		ContentType: pick("any", "signed"), ErrorBody: pick("specified", "detail", "detail-list", "empty", "html"), RepeatedPut: pick("replace", "second-flow")}
	s.Mix = append(s.Mix, drawMix(r, firstPDF, firstExtract)...)
	n := int(math.Ceil(math.Pow(60, math.Pow(r.Float64(), 2))))
	for i := range n {
		d := dropping{At: upTo(r, dropHours), Drop: len(s.Disposal) + r.IntN(len(s.PDFs.Drops)), N: i, Is: Scan}
		switch p := r.IntN(100); {
		case p < 15 && i > 0: // the same again, perhaps in another drop
			d.N, d.Again = r.IntN(i), i
		case p < 20:
			d.Is = CutOffScan
		case p < 25:
			d.Is = TextScan
		case p < 28:
			d.Is = ScanFolder
		}
		if d.Is != ScanFolder && r.IntN(3) == 0 {
			d.Named = 1 + r.IntN(3)
		}
		s.Drops = append(s.Drops, d)
	}
	slices.SortStableFunc(s.Drops, func(a, b dropping) int { return cmp.Compare(a.At, b.At) })
	for _, what := range []string{"vanish", "replace", "decide", "decide"} {
		for range r.IntN(3) * r.IntN(2) {
			s.Mishaps = append(s.Mishaps, mishap{At: upTo(r, faultHours), What: what, Drop: len(s.Disposal) + r.IntN(len(s.PDFs.Drops)), For: upTo(r, 3*time.Hour)})
		}
	}
	slices.SortStableFunc(s.Mishaps, func(a, b mishap) int { return cmp.Compare(a.At, b.At) })
}

// drawExtracts draws extracts, in every third scenario: when each comes and gets a further file, and what goes wrong.
func (s *scenario) drawExtracts(r *rand.Rand) {
	if r.IntN(3) > 0 {
		return
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	s.Extracts = Extracts{Every: 30*time.Minute + upTo(r, 4*time.Hour), Acknowledges: r.IntN(3) > 0, OwnAccount: r.IntN(2) == 0, Workers: 1 + r.IntN(2), MaxDownloads: uint16(2 + r.IntN(9))}
	s.Readings.Extracts = emulator.ExtractReadings{Times: pick("slash", "rfc3339"), List: pick("bare", "wrapped", "parts"), Download: pick("redirect", "bytes", "redirect-auth"),
		Acknowledge: pick("plural", "singular", "both"), Exported: pick("acknowledge", "download")}
	s.Mix = append(s.Mix, drawMix(r, firstExtract, firstNetwork)...)
	for n := range 1 + r.IntN(8) {
		at := upTo(r, dropHours)
		s.Mishaps = append(s.Mishaps, mishap{At: at, What: "extract", Drop: n})
		if r.IntN(3) == 0 {
			s.Mishaps = append(s.Mishaps, mishap{At: at + upTo(r, 8*time.Hour), What: "file of an extract", Drop: n})
		}
	}
	slices.SortStableFunc(s.Mishaps, func(a, b mishap) int { return cmp.Compare(a.At, b.At) })
}

// fingerprint tells one scenario from another: a seed is another one's name once what is
// drawn from it has changed.
func (s scenario) fingerprint() string {
	h := sha256.Sum256(fmt.Appendf(nil, "%+v", s))
	return fmt.Sprintf("%x", h[:4])
}

// folder makes what d drops.
func (s scenario) folder(d dropping) Folder {
	if d.Drop >= len(s.Disposal)+len(s.PDFs.Drops) {
		f := MakeDocument(s.Seed, d.N, d.Is)
		if d.Again > 0 {
			f = f.CopyDocumentToDropAgain(d.Again)
		}
		return f
	}
	if d.Drop >= len(s.Disposal) {
		f := MakePDF(s.Seed, d.N, d.Is)
		if d.Again > 0 {
			f = f.CopyPDFToDropAgain(d.Again)
		}
		if d.Named > 0 {
			f = f.renamePDF(fmt.Sprintf("%s%04d.pdf", scanPrefix, d.Named))
		}
		return f
	}
	f := MakeFolder(s.Seed, d.N, d.Is)
	if d.Again > 0 {
		f.Name += fmt.Sprintf(" (again %d)", d.Again)
	}
	return f
}

// config makes the world.
func (s scenario) config() Config {
	return Config{
		Seed: s.Seed, Vaults: len(s.Disposal), PDFs: s.PDFs, Extracts: s.Extracts, Network: s.Network, OAuth: s.OAuth, Accounts: s.Accounts,
		Daemon: func(c *daemon.Config) {
			c.Workers, c.BatchSize, c.PollMin = s.Workers, s.Batch, s.Poll
			c.ProbeEvery, c.LongestSleep = 6*time.Hour, s.Sleep
		},
		Drop: func(vault int, d *dropwork.Settings, moved string) {
			it := s.Disposal[vault]
			d.Disposes, d.Grace, d.Rescan, d.Settle = it.Disposes, it.Grace, s.Rescan, s.Settle
			if it.Moves {
				d.DisposeTo = moved
			}
		},
		Emulator: func(c *emulator.Config) {
			c.Readings, c.ArchiveMin, c.ArchiveMax, c.TokenLife = s.Readings, s.Archiving/10, s.Archiving, 20*time.Minute
			c.Network.DeliverMax, c.Network.DecideAfter, c.Network.RejectAfter, c.Network.Outcomes = s.Archiving, s.Archiving, s.Rejecting, s.Outcomes
			c.Network.ValidationAfter = s.Network.CheckedAfter
		},
	}
}

// plan leaves foreign numbers out where the service gives the same number again: the
// emulator would hold the second, right answer against whoever believes it. It leaves empty pages out where an
// index does not tell how many documents it has: an empty page is all that can end it then. It leaves shared
// addresses out where the ledger is set back: it cannot know the addresses that were given since.
func (s scenario) plan(hits []int) Plan {
	p := planMix(s.Seed, s.Mix, hits)
	setBack := slices.ContainsFunc(s.Mishaps, func(m mishap) bool { return m.What == "set back" })
	return func(op Op) Strike {
		strike := p(op)
		switch strike.Call.Kind {
		case emulator.ForeignAnswer, emulator.DoubleBumID:
			if s.Readings.Repeat == "same" {
				return Strike{}
			}
		case emulator.SharedAddress, emulator.RepeatedAddress:
			if setBack {
				return Strike{}
			}
		}
		if strike.Call.Kind == emulator.DoubleBumID && op.Name == "pdf-register" && setBack {
			return Strike{} // it cannot know the numbers that were given since
		}
		if found := s.Readings.IndexFound; strike.Call.Kind == emulator.EmptyPage && found != "all" && found != "left" {
			return Strike{}
		}
		return strike
	}
}

// run lets it happen.
func (s scenario) run(w *World, hits []int) Outcome {
	w.t.Helper()
	w.SetPlan(s.plan(hits))
	w.Start()
	began, drops, mishaps := time.Now(), s.Drops, s.Mishaps
	until := func(at time.Duration) { w.Advance(max(0, at-time.Since(began))) }
	for len(drops)+len(mishaps) > 0 {
		if len(mishaps) == 0 || len(drops) > 0 && drops[0].At <= mishaps[0].At {
			until(drops[0].At)
			f := s.folder(drops[0])
			if drops[0].Is == TakenDocument {
				w.OccupyNumber(f)
			}
			w.DropFolders(drops[0].Drop, f)
			drops = drops[1:]
			continue
		}
		until(mishaps[0].At)
		w.befall(mishaps[0], s.Careful)
		mishaps = mishaps[1:]
	}
	until(faultHours)
	w.SetPlan(nil)
	w.Restart(Graceful) // a route that was stopped for good goes on only then
	w.RunUntilCalm(7 * 24 * time.Hour)
	if len(s.PDFs.Drops) > 0 {
		w.DecideDeliveries(rand.New(rand.NewPCG(s.Seed, 0x656e64)), s.Careful)
		w.RunUntilCalm(7 * 24 * time.Hour)
	}
	if s.Network.Drops > 0 {
		dice := rand.New(rand.NewPCG(s.Seed, 0x616761696e))
		w.DecideDocuments(dice, s.Careful)
		w.DropReturnedAgain(dice)
		w.RunUntilCalm(7 * 24 * time.Hour)
	}
	return w.Check(true)
}

// befall makes a mishap happen.
func (w *World) befall(m mishap, careful bool) {
	switch m.What {
	case "decide":
		w.DecideDeliveries(rand.New(rand.NewPCG(uint64(m.At), 0)), careful)
	case "decide documents":
		w.DecideDocuments(rand.New(rand.NewPCG(uint64(m.At), 1)), careful)
	case "drop again":
		w.DropReturnedAgain(rand.New(rand.NewPCG(uint64(m.At), 2)))
	case "foreign notices":
		w.PublishForeign(rand.New(rand.NewPCG(uint64(m.At), 3)))
	case "restart":
		w.Restart(Graceful)
	case "kill":
		w.Restart(Death)
	case "reboot":
		w.Restart(Reboot)
	case "suspend":
		w.clock.suspend(m.For)
	case "mount":
		if n := len(w.dropped); n > 0 { // one of the last ones: most of the others are at rest
			w.MountOn(w.dropped[n-1-int(m.At/time.Second)%min(n, 5)].Name, m.For)
		}
	case "document comes":
		w.PublishReceived(m.Drop)
	case "extract":
		w.PublishExtract(m.Drop)
	case "file of an extract":
		w.AddExtractFile(m.Drop)
	case "clock wrong":
		w.clock.setMachineClock(m.For)
	case "clock right":
		w.clock.setMachineClock(0)
	case "vanish", "replace":
		w.TakeAway(m.Drop, m.What == "replace")
		w.Advance(min(m.For, 2*time.Hour))
		w.BringBack(m.Drop)
	case "set back":
		w.Snapshot()
		w.Advance(m.For)
		how := SetBack(m.Drop % 2)
		if len(w.cfg.PDFs.Drops) > 0 && m.At%3 == 0 {
			how = MadeAnew
		}
		w.SetBack(how)
		w.Advance(time.Hour)
		w.Administer()
	}
}

// String says in one line what the scenario is made of.
func (s scenario) String() string {
	var mix []string
	for _, c := range s.Mix {
		mix = append(mix, fmt.Sprintf("%d:%.2g", c.Class, c.Rate))
	}
	return fmt.Sprintf("%d folders, %d vaults, %d drops of PDFs, %d mishaps, repeat %s, late %s, classes %s", len(s.Drops), len(s.Disposal), len(s.PDFs.Drops), len(s.Mishaps),
		s.Readings.Repeat, s.Readings.LatePackage, strings.Join(mix, " "))
}
