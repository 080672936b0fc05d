// Package outside checks a ledger as package proof does, and holds it against what
// the tests see from outside: the registrations and slots that the services have,
// and the folders on the disk. It believes neither the entries nor the checker: it
// reads the lines itself. It changes nothing and does no I/O.
package outside

import (
	"bytes"
	"errors"
	"fmt"
	"path"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/proof"
)

// Seen is what was observed from outside the ledger. A field may be empty; then the rules that need it are not checked.
type Seen struct {
	Registrations []Registration // every one the service ever made
	Slots         []Slot         // every one of the services that cannot be asked; nil: nobody looked
	Disk          *Disk          // nil: nobody looked
}

// check is one check of a ledger.
type check struct {
	proof.Report
	lines
}

func (c *check) addFinding(promise string, key archive.Key, format string, a ...any) {
	c.Findings = append(c.Findings, proof.Finding{Promise: promise, Key: key, Text: fmt.Sprintf(format, a...)})
}

// Ledger is what is checked.
type Ledger interface {
	Head() ledger.Head
	Balance() ledger.Balance
	Lines(from uint64, fn func(n uint64, line []byte) error) error
	Arrivals(fn func(arrival.Arrival) error, states ...arrival.State) error
}

// Check checks a ledger that stays as it is meanwhile, and its entries.
func Check(l Ledger, entries []ledger.Entry, seen Seen) (proof.Report, error) {
	replay, head, balance := proof.NewReplay(nil, nil), l.Head(), l.Balance()
	c := &check{lines: lines{map[archive.Key]archive.ID{}, map[archive.RemoteID]binding{}, map[archive.ID]int{}}}
	var at ledger.Head
	err := l.Lines(1, func(_ uint64, stored []byte) error {
		line, err := ledger.ParseLine(stored)
		at = at.Next(stored)
		replay.Line(at, line, err)
		c.readLine(line)
		c.checkSecrets(at.N, stored)
		return nil
	})
	for _, e := range entries {
		replay.Entry(e)
	}
	err = errors.Join(err, l.Arrivals(func(a arrival.Arrival) error { replay.Arrival(a); return nil }, arrival.States()...))
	secrets := c.Findings
	c.Report = replay.Finish(head, &balance)
	c.Findings = append(secrets, c.Findings...)
	service, slots := newService(seen.Registrations), newSlots(seen.Slots)
	var disk *diskCheck
	if seen.Disk != nil {
		d := newDisk(*seen.Disk)
		disk = &d
	}
	for _, e := range entries {
		service.checkEntry(e, c)
		slots.checkEntry(e, c)
		if disk != nil {
			disk.checkSource(e, c)
		}
	}
	service.checkAll(seen.Registrations, c)
	slots.checkAll(c)
	if disk != nil {
		disk.checkDropped(c)
	}
	return c.Report, err
}

// checkSecrets checks that a line holds no upload address.
func (c *check) checkSecrets(n uint64, line []byte) {
	if bytes.Contains(line, []byte("://")) || bytes.Contains(line, []byte("X-Amz-")) {
		c.addFinding("I7", archive.Key{}, "line %d holds an address: %s", n, line)
	}
}

// Registration is one registration as the service has it.
type Registration struct {
	ID       archive.ID
	Remote   archive.RemoteID
	Metadata archive.Digest // of the document's object as it was posted
	Stored   bool           // content came, whatever became of it
	SHA256   archive.Digest // of the content, where stored
	Size     int64          // bytes of it
	Torn     bool           // its body ended early and the store kept it: it can never be archived
	Replaced bool           // other bytes were stored over those that came first
	Archived bool           // the service says ArchivingSuccessful
	Failed   bool           // the service says ArchivingFailed: it will never be archived
}

// RegistrationsOf returns the registrations that the emulated service made.
func RegistrationsOf(made []emulator.RegistrationRecord) (all []Registration, err error) {
	for _, r := range made {
		one := Registration{Remote: archive.RemoteID(r.BumID), Stored: r.PUTs > 0, Size: r.Size, Torn: r.Torn, Replaced: r.Replaced,
			Archived: !r.ArchivedAt.IsZero(), Failed: r.State == "ArchivingFailed" && !r.Archivable}
		var errs [3]error
		one.ID, errs[0] = archive.ParseID(r.ClientUUID)
		one.Metadata, errs[1] = archive.ParseDigest(r.MetadataSHA256)
		if one.Stored {
			one.SHA256, errs[2] = archive.ParseDigest(r.SHA256)
		}
		all, err = append(all, one), errors.Join(err, errs[0], errs[1], errs[2])
	}
	return all, err
}

// Disk is what people dropped and where everything lies now.
type Disk struct {
	Dropped []Folder // one for each time a folder was dropped, or moved back
	Present []Folder // one for each folder that is found
}

// Folder is a folder in one drop. For one that lies somewhere, Path is relative to
// the drop ("Huber 88", ".vaultd/claimed/<key>/Huber 88", "_rejected/Huber 88"), or
// absolute once moved out; for one that was dropped it is the name alone.
type Folder struct{ Drop, Path string }

// claimedPath returns where the claimed source of e lies in its drop.
func claimedPath(e ledger.Entry) string { return ".vaultd/claimed/" + e.Key.String() + "/" + e.Folder }

// claimedName returns the folder's name where p lies in the claimed area.
func claimedName(p string) (string, bool) {
	ok, _ := path.Match(".vaultd/claimed/*/*", p)
	return path.Base(p), ok
}

// serviceCheck checks the entries against the registrations that the service has.
type serviceCheck struct {
	byID  map[archive.ID][]Registration
	multi map[archive.ID]bool // more than one archivable content, no flag found yet
	known map[archive.ID]bool // some entry has this identity
}

func newService(rs []Registration) serviceCheck {
	s := serviceCheck{map[archive.ID][]Registration{}, map[archive.ID]bool{}, map[archive.ID]bool{}}
	for _, r := range rs {
		s.byID[r.ID] = append(s.byID[r.ID], r)
	}
	for id, rs := range s.byID {
		if countContents(rs) > 1 {
			s.multi[id] = true
		}
	}
	return s
}

// countContents counts the registrations whose content is archived or may yet be.
func countContents(rs []Registration) int {
	n := 0
	for _, r := range rs {
		if r.Stored && !r.Failed || r.Archived {
			n++
		}
	}
	return n
}

// checkEntry checks one entry against its registrations: those of all its generations
// that the journal bound to it or to nobody.
func (s serviceCheck) checkEntry(e ledger.Entry, c *check) {
	var mine []Registration
	for g := 0; g <= int(e.Generation) && !e.ID.IsZero(); g++ {
		id := e.FirstID.Generation(g)
		if len(s.byID[id]) > 0 {
			s.known[id] = true
		}
		if e.PossibleDouble {
			delete(s.multi, id)
		}
		for _, r := range s.byID[id] {
			if b, ok := c.bindings[r.Remote]; !ok || b.last == e.Key {
				mine = append(mine, r)
			}
		}
	}
	if countContents(mine) > 1 && !e.PossibleDouble {
		c.addFinding("I2", e.Key, "%d registrations hold archivable content and the entry does not say so", countContents(mine))
		for _, r := range mine {
			delete(s.multi, r.ID) // said once
		}
	}
	s.checkContent(e, mine, c)
}

// checkContent checks what the service stores for e, and its success.
func (s serviceCheck) checkContent(e ledger.Entry, mine []Registration, c *check) {
	success := len(s.byID) == 0 || e.State != ledger.Archived
	for _, r := range mine {
		indexOnly := c.PutBack > 0 && e.Content == archive.Digest{} // found in the archive's index: nobody has recorded what was sent
		torn := r.Torn && !r.Archived                               // the beginning of a package, which is no other package
		if r.Stored && !indexOnly && !torn && (r.SHA256 != e.Package.SHA256 || r.Size != e.Package.Size) {
			c.addFinding("I4", e.Key, "registration %s holds %d bytes that are not the recorded package of %d bytes", r.Remote, r.Size, e.Package.Size)
		}
		if r.Replaced {
			c.addFinding("I8", e.Key, "what was stored under registration %s was replaced by other bytes", r.Remote)
		}
		if r.Archived && e.State == ledger.Rejected && !e.InDoubt && !e.Contradicted && e.IsAtRest() {
			c.addFinding("I12", e.Key, "rejected as certainly absent, but registration %s is archived", r.Remote)
		}
		success = success || r.Archived && r.Remote == e.ArchivedRemote
	}
	if !success {
		c.addFinding("I12", e.Key, "archived, but the service has no success for registration %s", e.ArchivedRemote)
	}
}

// checkAll checks what concerns the service as a whole.
func (s serviceCheck) checkAll(rs []Registration, c *check) {
	for id := range s.multi {
		c.addFinding("I2", archive.Key{}, "clientUUID %s has more than one archivable content and no entry says so", id)
	}
	unknown := map[archive.ID]int{}
	frozen := map[archive.ID]archive.Digest{}
	for _, r := range rs {
		if !s.known[r.ID] && (c.PutBack == 0 || r.Stored && !r.Failed) { // one without content went with the lost ledger
			c.addFinding("I9", archive.Key{}, "registration %s has a clientUUID that no entry ever had", r.Remote)
		}
		if b, ok := c.bindings[r.Remote]; !ok {
			if c.PutBack == 0 || r.Stored && !r.Failed {
				unknown[r.ID]++
			}
		} else if b.found && s.known[r.ID] {
			continue // of which generation, the service alone could tell
		} else if b.id != r.ID {
			c.addFinding("I8", b.last, "registration %s belongs to another clientUUID at the service", r.Remote)
		}
		if m, ok := frozen[r.ID]; ok && m != r.Metadata {
			c.addFinding("I10", archive.Key{}, "clientUUID %s was registered with different metadata", r.ID)
		}
		frozen[r.ID] = r.Metadata
	}
	for id, n := range unknown {
		if n > c.lost[id] {
			c.addFinding("I9", archive.Key{}, "clientUUID %s has registrations that the ledger does not know: %d; possible: %d", id, n, c.lost[id])
		}
	}
}

// diskCheck checks where the sources lie.
type diskCheck struct {
	dropped map[Folder]int
	present map[Folder]bool
	taken   map[Folder]int // entries by the name they were dropped under
}

func newDisk(d Disk) diskCheck {
	k := diskCheck{map[Folder]int{}, map[Folder]bool{}, map[Folder]int{}}
	for _, d := range d.Dropped {
		k.dropped[d]++
	}
	for _, l := range d.Present {
		k.present[l] = true
	}
	return k
}

// checkSource checks that the source of e lies where the entry says.
func (d diskCheck) checkSource(e ledger.Entry, c *check) {
	name := Folder{e.Drop, e.Folder}
	d.taken[name]++
	home, dest := Folder{e.Drop, claimedPath(e)}, Folder{e.Drop, e.Dest}
	moved := d.dropped[name] > 1 // people may have moved a returned one back
	promise, there := "I1", true
	switch e.Source {
	case ledger.Claimed:
		there = d.present[home]
	case ledger.Returning, ledger.Keeping:
		there = d.present[home] || d.present[dest]
	case ledger.Returned:
		there = d.present[dest] || moved
	case ledger.Kept, ledger.Moved:
		promise, there = "I3", d.present[dest]
	}
	if !there {
		c.addFinding(promise, e.Key, "the source is %s but does not lie there", e.Source)
	}
	delete(d.present, home)
}

// checkDropped checks that every folder that was dropped is claimed or still there. A claimed folder without an entry was left by
// a crash between the claim and the commit; the next start adopts it.
func (d diskCheck) checkDropped(c *check) {
	adopt := map[Folder]int{}
	for l := range d.present {
		if name, ok := claimedName(l.Path); ok {
			adopt[Folder{l.Drop, name}]++
		}
	}
	for name, n := range d.dropped {
		have := d.taken[name] + adopt[name]
		if d.present[name] {
			have++
		}
		if have < n {
			c.addFinding("I1", archive.Key{}, "a folder of drop %s was dropped this often: %d, and is accounted for this often: %d", name.Drop, n, have)
		}
	}
}
