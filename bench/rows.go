package main

import "slices"

// rows are all measurements, in the order in which they are run and told.
func (b *bench) rows() []row {
	return slices.Concat(
		b.limitRows(),
		b.zipRows(),
		b.ledgerRows(),
		b.wholeRows(),
		b.pdfRows(),
		b.extractRows(),
		b.networkRows(),
		b.peerRows(),
		b.flatRows(),
		b.restartRows(),
		b.memoryRows(),
		b.indexRows(),
		b.verifyRows(),
		b.askRows(),
		b.idleRows(),
		b.burstRows(),
		b.killRows(),
		b.faultRows(),
	)
}
