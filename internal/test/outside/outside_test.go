package outside

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world is a ledger and what was seen from outside.
type world struct {
	*fill.Ledger
	seen    Seen
	entries []ledger.Entry // in the place of those that are stored; nil: as they are
}

func (w *world) findings(t *testing.T) []proof.Finding {
	t.Helper()
	if w.entries == nil {
		kit.Must(t, w.EntriesOldestFirst(func(e ledger.Entry) error {
			w.entries = append(w.entries, e)
			return nil
		}))
	}
	return kit.Value(Check(w.Ledger, w.entries, w.seen))(t).Findings
}

// upload sends an item under a number, and its store takes it.
func upload(i *fill.Item, number archive.RemoteID) {
	i.Apply(noon, ledger.RegisterIntended{}, fill.Ticket(number, noon, i.Route), ledger.UploadIntended{}, i.Accepted())
}

// registration is what the service has of an item under a number.
func registration(i *fill.Item, number archive.RemoteID, stored, archived bool) Registration {
	e := i.Entry()
	r := Registration{ID: e.ID, Remote: number, Metadata: e.Metadata, Stored: stored, Archived: archived}
	if stored {
		r.SHA256, r.Size = e.Package.SHA256, e.Package.Size
	}
	return r
}

// newEveryday returns a ledger in which a little of everything happened.
func newEveryday(t *testing.T) *world {
	w := &world{Ledger: fill.New(t, boltledger.Config{}, ledger.Info{})}
	one := w.Item("one") // archived, disposed of
	one.Seal(noon)
	upload(one, "b1")
	one.Apply(noon, fill.Seen("b1", archive.Successful, noon), ledger.PlaceIntended{Dest: "_archived/one"}, ledger.Placed{DisposeAt: noon})
	one.Apply(noon.Add(time.Hour), ledger.DisposeIntended{}, ledger.Disposed{})
	two := w.Item("two") // rejected, returned
	two.Seal(noon)
	two.Refuse(noon, ledger.Cause{Code: "too-large"})
	two.Place(noon, "_rejected/two")
	three := w.Item("three") // an answer was lost, a window was missed, kept
	three.Seal(noon)
	three.Apply(noon, ledger.RegisterIntended{}, ledger.RegisterUnanswered{}, ledger.RegisterIntended{}, fill.Ticket("b3", noon, ledger.Vault), ledger.WindowClosed{})
	upload(three, "b4")
	three.Apply(noon, fill.Seen("b4", archive.Successful, noon), ledger.PlaceIntended{Dest: "_archived/three"}, ledger.Placed{})
	four := w.Item("four") // in doubt, released, double
	four.Seal(noon)
	four.Apply(noon, ledger.RegisterIntended{}, fill.Ticket("b5", noon, ledger.Vault), ledger.UploadIntended{}, ledger.WindowClosed{}, ledger.Released{})
	upload(four, "b6")
	five := w.Item("five") // its answer is being waited for
	five.Seal(noon)
	five.Apply(noon, ledger.RegisterIntended{})
	w.seen = Seen{
		Registrations: []Registration{
			registration(one, "b1", true, true), registration(three, "b2", false, false), registration(three, "b3", false, false), registration(three, "b4", true, true),
			registration(four, "b5", true, false), registration(four, "b6", true, false), registration(five, "b7", false, false),
		},
		Disk: &Disk{Present: []Folder{
			{"acme-in", "_rejected/two"}, {"acme-in", "_archived/three"}, {"acme-in", claimedPath(four.Entry())}, {"acme-in", claimedPath(five.Entry())},
			{"acme-in", "not taken yet"}, {"acme-in", ".vaultd/claimed/" + (archive.Key{6}).String() + "/left by a crash"},
		}},
	}
	for _, name := range []string{"one", "two", "three", "four", "five", "not taken yet", "left by a crash"} {
		w.seen.Disk.Dropped = append(w.seen.Disk.Dropped, Folder{"acme-in", name})
	}
	return w
}

func TestCheck_EverydayHolds(t *testing.T) {
	w := newEveryday(t)
	kit.Want(t, "findings", w.findings(t), nil)
	w.seen = Seen{}
	kit.Want(t, "findings where nobody looked", w.findings(t), nil)
}

// One thing is broken at a time: its promise is named first, for the right entry,
// and none that is not listed.
func TestCheck_FindsWhatIsBroken(t *testing.T) {
	present := func(i int) func(*world) {
		return func(w *world) { w.seen.Disk.Present = slices.Delete(w.seen.Disk.Present, i, i+1) }
	}
	type row struct {
		promises, item string // empty: of no single entry
		spoil          func(*world)
	}
	kit.Rows(t, map[string]row{
		"TwoContentsUnsaid": {"I2", "", func(w *world) {
			r := &w.seen.Registrations[1]
			r.Stored, r.SHA256, r.Size = true, w.seen.Registrations[3].SHA256, 1000
		}},
		"FlagWiped": {"I2 I12", "four", func(w *world) {
			_ = w.EntriesOldestFirst(func(e ledger.Entry) error {
				e.PossibleDouble = false
				w.entries = append(w.entries, e)
				return nil
			})
		}},
		"OtherBytes":           {"I4", "one", func(w *world) { w.seen.Registrations[0].SHA256[5] ^= 1 }},
		"ReplacedAtTheService": {"I8", "one", func(w *world) { w.seen.Registrations[0].Replaced = true }},
		"OtherLength":          {"I4", "one", func(w *world) { w.seen.Registrations[0].Size++ }},
		"ArchivedHereNotThere": {"I12", "three", func(w *world) { w.seen.Registrations[3].Archived = false }},
		"ServiceCrossedIt": {"I8 I12", "one", func(w *world) {
			r, other := &w.seen.Registrations[0], w.seen.Registrations[4]
			r.ID, r.SHA256, r.Size, r.Metadata = other.ID, other.SHA256, other.Size, other.Metadata
		}},
		"UnknownBeyondTheBound": {"I9", "", func(w *world) {
			r := w.seen.Registrations[6]
			r.Remote = "b8"
			w.seen.Registrations = append(w.seen.Registrations, r)
		}},
		"NobodysRegistration": {"I9", "", func(w *world) {
			w.seen.Registrations = append(w.seen.Registrations, Registration{ID: archive.ID{77}, Remote: "b9"})
		}},
		"MetadataChanged":     {"I10", "", func(w *world) { w.seen.Registrations[2].Metadata = archive.Digest{99} }},
		"ReturnedSourceLost":  {"I1", "two", present(0)},
		"KeptSourceLost":      {"I3", "three", present(1)},
		"ClaimedSourceLost":   {"I1", "four", present(2)},
		"DroppedFolderLost":   {"I1", "", present(4)},
		"UnadoptedFolderLost": {"I1", "", present(5)},
		// A store kept the beginning of a body that ended early: it is no other package, unless it is archived.
		"EndedEarly": {"", "", func(w *world) {
			r := &w.seen.Registrations[4]
			r.SHA256, r.Size, r.Torn = archive.Digest{99}, 10, true
		}},
		"EndedEarlyAndArchived": {"I4", "four", func(w *world) {
			r := &w.seen.Registrations[4]
			r.SHA256, r.Size, r.Torn, r.Archived = archive.Digest{99}, 10, true, true
		}},
	}, func(t *testing.T, row row) {
		w := newEveryday(t)
		row.spoil(w)
		var found []string
		named := row.promises == ""
		findings := w.findings(t)
		for _, f := range findings {
			found = append(found, f.Promise)
			named = named || f.Promise == strings.Fields(row.promises)[0] && (row.item == "" || f.Key == w.Item(row.item).Key)
		}
		slices.SortFunc(found, func(a, b string) int { return strings.Index(row.promises, a) - strings.Index(row.promises, b) })
		got := strings.Join(slices.Compact(found), " ")
		kit.Check(t, got == row.promises && named, "found %q, want %q of %q: %v", got, row.promises, row.item, findings)
	})
}

// A service that knows the clientUUID of a rejected entry gives the one that takes
// it over the same number again.
func TestCheck_I8_ARedropMayGetTheSameNumber(t *testing.T) {
	w := &world{Ledger: fill.New(t, boltledger.Config{}, ledger.Info{})}
	one := w.Item("one")
	one.Seal(noon)
	one.Apply(noon, ledger.RegisterIntended{}, fill.Ticket("b1", noon, ledger.Vault), ledger.WindowClosed{}, ledger.RegisterIntended{}, ledger.RegisterRefused{},
		ledger.RegisterIntended{}, ledger.RegisterRefused{})
	sealed, _ := one.Sealed()
	again := w.Add(fill.Item{Name: "again", Change: func(ev *ledger.Sealed) {
		ev.ID, ev.Content, ev.Metadata, ev.Supersedes = sealed.ID, sealed.Content, sealed.Metadata, one.Key
	}})
	again.Seal(noon.Add(time.Hour))
	upload(again, "b1")
	again.Apply(noon.Add(time.Hour), fill.Seen("b1", archive.Successful, noon))
	w.seen.Registrations = []Registration{registration(again, "b1", true, true)}
	kit.Want(t, "findings", w.findings(t), nil)
}

// I15: what a lost ledger registered is known by the service alone. Content that
// the ledger knows nothing of is a fault.
func TestCheck_I15_OfALedgerThatWasPutBack(t *testing.T) {
	w := newEveryday(t)
	w.Mark(ledger.Mark{Name: ledger.MarkRestored, By: ledger.Operator{UID: 7}, At: noon}, "")
	four, five := w.Item("four"), w.Item("five")
	for _, i := range []*fill.Item{w.Item("three"), four, five} {
		i.Apply(noon, ledger.ReconcileRequired{})
	}
	next := four.Entry().FirstID.Generation(1)
	five.Apply(noon, ledger.RegistrationFound{Remote: "b8", ID: five.Entry().ID}, fill.Seen("b8", archive.InProgress, noon), fill.Seen("b8", archive.Successful, noon))
	four.Apply(noon, ledger.RegistrationFound{Remote: "b9", ID: next}, fill.Seen("b9", archive.WaitingForPackage, noon))
	five.Apply(noon, ledger.Reconciled{})
	old := registration(w.Item("three"), "b10", false, false) // too old for the status list
	w.seen.Disk = nil
	w.seen.Registrations = append(w.seen.Registrations, registration(five, "b8", true, true), Registration{ID: next, Remote: "b9", Metadata: four.Entry().Metadata}, old)
	kit.Want(t, "findings", w.findings(t), nil)
	w.seen.Registrations[len(w.seen.Registrations)-1].Stored = true
	kit.Check(t, len(w.findings(t)) > 0, "a forgotten registration with content: no finding, want one")
}

// I2, I4, I12: what is delivered is in the recorded slot, whole, with the
// recorded bytes and only there, and the slots hold only what the ledger says
// is there.
func TestCheck_I12_SlotsOfWhatIsDelivered(t *testing.T) {
	begin := func(i *fill.Item, remote archive.RemoteID) {
		i.Apply(noon, ledger.RegisterIntended{}, fill.Ticket(remote, noon, ledger.PDF))
	}
	send := func(i *fill.Item) { i.Apply(noon, ledger.UploadIntended{}) }
	deliver := func(i *fill.Item) { i.Apply(noon, ledger.UploadIntended{}, i.Accepted()) }
	doubt := func(i *fill.Item) {
		i.Apply(noon, ledger.UploadIntended{}, ledger.SentToQuarantine{Cause: ledger.DeliveryUnknown("no answer")})
	}
	again := func(i *fill.Item) {
		i.Apply(noon, ledger.Released{})
		begin(i, "s2")
		deliver(i)
	}
	const torn, other = 't', 'o' // 'w': whole
	type row struct {
		promise string // empty: all is well
		then    func(i *fill.Item)
		slots   map[archive.RemoteID]string // by slot, the uploads; nil: nobody looked
	}
	kit.Rows(t, map[string]row{
		"Delivered":         {"", deliver, map[archive.RemoteID]string{"s1": "w"}},
		"NobodyLooked":      {"", deliver, nil},
		"NothingThere":      {"I12", deliver, map[archive.RemoteID]string{"s1": ""}},
		"NoSuchSlot":        {"I12", deliver, map[archive.RemoteID]string{}},
		"TornThere":         {"I12", deliver, map[archive.RemoteID]string{"s1": "t"}},
		"OtherBytes":        {"I4", doubt, map[archive.RemoteID]string{"s1": "o"}},
		"SentTwice":         {"I2", deliver, map[archive.RemoteID]string{"s1": "ww"}},
		"Doubted":           {"", doubt, map[archive.RemoteID]string{"s1": "w"}},
		"DoubtedAndNot":     {"", doubt, map[archive.RemoteID]string{"s1": ""}},
		"ClosedInDoubt":     {"", func(i *fill.Item) { doubt(i); i.Apply(noon, ledger.Closed{}) }, map[archive.RemoteID]string{"s1": "w"}},
		"SaidNotSent":       {"I12", func(i *fill.Item) { send(i); i.Apply(noon, ledger.UploadNotSent{}) }, map[archive.RemoteID]string{"s1": "w"}},
		"ContentOfNobody":   {"I9", deliver, map[archive.RemoteID]string{"s1": "w", "s2": "w"}},
		"SlotOfNobody":      {"", deliver, map[archive.RemoteID]string{"s1": "w", "s2": ""}},
		"ReleasedAndTwice":  {"", func(i *fill.Item) { doubt(i); again(i) }, map[archive.RemoteID]string{"s1": "w", "s2": "w"}},
		"ReleasedOtherSlot": {"I12", func(i *fill.Item) { doubt(i); again(i) }, map[archive.RemoteID]string{"s1": "w", "s2": ""}},
		"RefusedAndTwice": {"I2", func(i *fill.Item) {
			i.Apply(noon, ledger.UploadIntended{}, ledger.UploadRefused{})
			begin(i, "s2")
			deliver(i)
		},
			map[archive.RemoteID]string{"s1": "t", "s2": "w"}},
	}, func(t *testing.T, row row) {
		w := &world{Ledger: fill.New(t, boltledger.Config{}, ledger.Info{})}
		i := w.PDF("scan.pdf")
		sent := i.Seal(noon).Package
		begin(i, "s1")
		row.then(i)
		if row.slots != nil {
			w.seen.Slots = []Slot{}
		}
		for remote, uploads := range row.slots {
			s := Slot{Remote: remote}
			for _, u := range uploads {
				one := StoredUpload{SHA256: sent.SHA256, Size: sent.Size, Torn: u == torn}
				if u == other {
					one.SHA256 = archive.Digest{77}
				}
				s.Uploads = append(s.Uploads, one)
			}
			w.seen.Slots = append(w.seen.Slots, s)
		}
		found := w.findings(t)
		kit.Check(t, (row.promise != "" || len(found) == 0) && (row.promise == "" || len(found) > 0 && found[0].Promise == row.promise),
			"findings = %v, want one of %q", found, row.promise)
	})
}
