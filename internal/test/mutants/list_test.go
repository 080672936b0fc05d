package mutants

import "slices"

// Tests that several mutants are held against, from the quickest on.
const (
	pure     = "vaultd/internal/ledger"
	onDisk   = "vaultd/internal/ledger/boltledger"
	engine   = "vaultd/internal/ingest"
	calls    = "vaultd/internal/apicall"
	speech   = "vaultd/internal/vaultapi"
	pdfs     = "vaultd/internal/pdfapi"
	readings = "vaultd/internal/test/readings"
	worlds   = "vaultd/internal/test/simulation -sample"
	folders  = "vaultd/internal/drop"
	packing  = "vaultd/internal/packager"
	watching = "vaultd/internal/watch"
	standIn  = "vaultd/internal/emulator"
)

// list holds the mutants, by what they break.
var list = slices.Concat(protocol, remote, kept, sources, outside, catalog, port, page, browser, files, judge, deliveries, pdfUploads, pdfWorlds, arrivals, booked, network, notices)
