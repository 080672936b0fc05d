package daemon

import (
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// ledgerPort is the ledger as the conductor sees it.
type ledgerPort struct{ *boltledger.Ledger }

func (p ledgerPort) Due(s ledger.Step, now time.Time, limit int, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
	return p.Ledger.Due(s, now, limit, func(k archive.Key) bool {
		if skip == nil {
			return false
		}
		e, ok, err := p.Ledger.Entry(k)
		return err == nil && ok && skip(e)
	})
}
