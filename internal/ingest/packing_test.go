package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// poorDisk is a packer whose disk gives nothing back, and counts the packages
// that it is asked to make.
type poorDisk struct {
	*folders
	asked  *atomic.Int32
	pack   func() error // what packing comes to, the first time excepted; nil: packages are made
	forget bool         // no package is found
	silent bool         // an entry has no package from the start
}

func (d *poorDisk) Pack(ctx context.Context, e ledger.Entry) (ingest.Packed, error) {
	n := d.asked.Add(1)
	letTimePass(n)
	if d.pack != nil && (n > 1 || d.silent) {
		return ingest.Packed{}, d.pack()
	}
	return d.folders.Pack(ctx, e)
}

func (d *poorDisk) FindPackage(e ledger.Entry) (archive.Package, error) {
	if d.forget {
		return archive.Package{}, fs.ErrNotExist
	}
	return d.folders.FindPackage(e)
}

// letTimePass ends a circle without a wait, in which virtual time stands still.
func letTimePass(tries int32) {
	if tries > 1000 {
		time.Sleep(time.Hour)
	}
}

// unreadable is a network of which no document can be composed.
type unreadable struct {
	ingest.Sender
	composed *atomic.Int32
	why      error
}

func (u unreadable) Compose(archive.Package, archive.Digest, []archive.FileID) (archive.NetworkBody, error) {
	letTimePass(u.composed.Add(1))
	return archive.NetworkBody{}, u.why
}

// I23, I25: whatever goes wrong with a package, on any route and at each try,
// packing waits longer each time. A document is tried again all the same.
func TestPack_I23_I25_NothingIsPackedAgainWithoutAWait(t *testing.T) {
	t.Parallel()
	fails := func() error { return errors.New("read error") }
	for name, row := range map[string]struct {
		disk    poorDisk
		compose error // of the network
		damaged bool  // each package changes while it is sent
		routes  []ledger.Route
	}{
		"PackingFails":            {poorDisk{pack: fails, silent: true}, nil, false, []ledger.Route{ledger.Vault, ledger.PDF, ledger.Network}},
		"ChangesWhileItIsPacked":  {poorDisk{pack: func() error { return archive.ErrChanged }, silent: true}, nil, false, []ledger.Route{ledger.Vault, ledger.PDF, ledger.Network}},
		"IsNotThereToBePacked":    {poorDisk{pack: func() error { return fs.ErrNotExist }, silent: true}, nil, false, []ledger.Route{ledger.Vault, ledger.PDF, ledger.Network}},
		"PackageIsNeverFound":     {poorDisk{forget: true}, nil, false, []ledger.Route{ledger.Vault, ledger.PDF, ledger.Network}},
		"PackingFailsOnceMissing": {poorDisk{forget: true, pack: fails}, nil, false, []ledger.Route{ledger.Vault, ledger.PDF, ledger.Network}},
		"NoDocumentIsComposed":    {poorDisk{}, errors.New("bad ZIP"), false, []ledger.Route{ledger.Network}},
		"ComposerFindsNoPackage":  {poorDisk{}, fs.ErrNotExist, false, []ledger.Route{ledger.Network}},
		"ChangesWhileItIsSent":    {poorDisk{}, nil, true, []ledger.Route{ledger.Vault}},
	} {
		for _, route := range row.routes {
			t.Run(fmt.Sprintf("%s/%s", name, route), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var composed atomic.Int32
					pdf := &service{}
					r := buildPDF(t, pdf, "scans")
					r.s.damaged = func() bool { return row.damaged }
					r.cfg.Routes[ledger.Network] = ingest.Route{Sender: unreadable{composed: &composed, why: row.compose}, Workers: 1, BatchSize: 1}
					r.cfg.Drops = append(r.cfg.Drops, newDrop("out", ingest.Drop{Route: ledger.Network}))
					drop := map[ledger.Route]string{ledger.Vault: "V", ledger.PDF: "scans", ledger.Network: "out"}[route]
					disk := row.disk
					disk.folders, disk.asked = r.folders(drop), new(atomic.Int32)
					r.configured(drop).Packer = &disk
					r.start()
					claimed := ledger.ClaimedFolder{Route: route, Drop: drop, Folder: "a.pdf", Fingerprint: archive.Digest{1}, NotBefore: r.s.now().Wall.Add(time.Second)}
					if route == ledger.Vault {
						claimed.Vault = "V"
					}
					r.EnterClaimed(archive.NewKey(time.Now()), claimed)
					r.pass(time.Hour)
					tries := disk.asked.Load()
					kit.Check(t, tries >= 3 && tries <= 100, "packed %d times within an hour, want at most 100 and not given up; %+v", tries, r.entries()[0].Cause)
					kit.Check(t, composed.Load() <= 100, "composed %d times within an hour, want at most 100", composed.Load())
				})
			})
		}
	}
}
