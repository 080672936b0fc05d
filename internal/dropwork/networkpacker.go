package dropwork

import (
	"context"
	"crypto/rand"

	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/spool"
)

var _ ingest.Packer = (*NetworkPacker)(nil)

// NetworkPacker seals the claimed folders of a drop of the business network into the spool, for the engine.
type NetworkPacker struct{ Packer }

// Pack implements ingest.Packer.
func (p *NetworkPacker) Pack(ctx context.Context, e ledger.Entry) (ingest.Packed, error) {
	var s packager.SealedNetwork
	rules := p.Settings.networkRules()
	rules.Folder = e.Folder
	if e.WasSealed() {
		// What its files are is in its document since then, and it is not
		// judged by what a document may hold today: its digest is.
		rules.TypeFiles, rules.Check = nil, func([]byte) []packager.DocumentFault { return nil }
	}
	err := p.packClaimed(ctx, e, func(c claimedSource) (err error) {
		// A crash here leaves a half-made file, which the next start removes; the entry is still to be packed.
		s, err = packager.BuildNetwork(ctx, c.root, rules, c.spool, spool.PackageName(e.Route, e.Key))
		return err
	})
	if err != nil {
		return ingest.Packed{}, err
	}
	s.Package.Path = p.shared.Spool.PackagePath(e.Route, e.Key)
	doc := ledger.Document{Metadata: s.Document.Metadata(), Files: s.Files, ControlFiles: s.Others, Junk: s.Junk, Remarks: s.Endings.Remarks(), FileOwners: ledger.OtherOwners(s.Owners, e.Owner)}
	rand.Read(doc.Salt[:]) // never fails: the runtime stops the process instead
	return ingest.Packed{Document: doc, AsRead: s.AsRead, Sealed: ledger.Sealed{
		ID: s.ID, Content: s.Content, Metadata: s.Metadata, Package: s.Package, Seal: doc.Seal(s.Package),
		Number: s.Document.NetworkNumberDigest(), StrangeDate: s.Document.HasStrangeDate(p.shared.Now().Wall.In(p.shared.zone())), LooksCutOff: len(s.Endings.Short) > 0,
	}}, nil
}
