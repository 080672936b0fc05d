package dropwork

import (
	"context"
	"crypto/rand"

	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/spool"
)

var _ ingest.Packer = (*PDFPacker)(nil)

// PDFPacker copies the claimed PDFs of one drop into the spool, for the engine.
type PDFPacker struct{ Packer }

// Pack implements ingest.Packer.
func (p *PDFPacker) Pack(ctx context.Context, e ledger.Entry) (ingest.Packed, error) {
	var s packager.SealedPDF
	err := p.packClaimed(ctx, e, func(c claimedSource) (err error) {
		// A crash here leaves a half-made file, which the next start removes; the entry is still to be packed.
		s, err = packager.BuildPDF(ctx, c.root, p.Settings.pdfRules(), c.spool, spool.PackageName(e.Route, e.Key))
		return err
	})
	if err != nil {
		return ingest.Packed{}, err
	}
	s.Package.Path = p.shared.Spool.PackagePath(e.Route, e.Key)
	doc := ledger.Document{Metadata: s.Request, Files: s.Files, Junk: s.Junk, Remarks: s.Endings.Remarks(), FileOwners: ledger.OtherOwners(s.Owners, e.Owner)}
	rand.Read(doc.Salt[:]) // never fails: the runtime stops the process instead
	return ingest.Packed{Document: doc, Sealed: ledger.Sealed{ID: s.ID, Content: s.Content, Metadata: s.Metadata, Package: s.Package, Seal: doc.Seal(s.Package), LooksCutOff: len(s.Endings.Short) > 0}}, nil
}
