package report

import (
	"cmp"
	"math/big"
	"slices"
)

const (
	sendersOnPage  = 20
	sendersAtMost  = 50_000   // different names, and sums of a name and a currency, that are counted
	sendersNamesAt = 16 << 20 // bytes of the names
)

// senders counts archived documents by the sender's name. Names are counted as
// they are written: nobody says which of them are the same. If there are more
// than fit into memory, none is ranked: a rank of some of them would be wrong.
type senders struct {
	byName   map[string]*sender
	pairs    int // sums of a name and a currency
	bytes    int // of the names
	unranked bool
}

type sender struct {
	documents uint64
	sums      map[string]*sum // by currency
}

// senderLine is one sender in figures.
type senderLine struct {
	Name      string      `json:"senderName"` // empty: none is given, or the metadata is erased
	Documents uint64      `json:"documents"`
	Sums      []senderSum `json:"sums"`
}

type senderSum struct {
	Currency string `json:"currencyCode"`
	Total    string `json:"total"` // exact decimal
}

func newSenders() senders { return senders{byName: map[string]*sender{}} }

// countDocument counts an archived document. amount is nil where it has none.
func (s *senders) countDocument(name, currency string, amount *big.Rat) {
	if s.unranked {
		return
	}
	one := s.byName[name]
	if one == nil {
		one = &sender{sums: map[string]*sum{}}
		s.byName[name] = one
		s.bytes += len(name)
	}
	one.documents++
	s.pairs -= len(one.sums)
	if amount != nil {
		addAmount(one.sums, currency, amount)
	}
	s.pairs += len(one.sums)
	if len(s.byName)+s.pairs > sendersAtMost || s.bytes > sendersNamesAt {
		s.unranked, s.byName = true, nil
	}
}

// listTop gives those with most documents. unranked tells that there are too many to rank.
func (s senders) listTop() (top []senderLine, unranked bool) {
	names := make([]string, 0, len(s.byName))
	for name := range s.byName {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.byName[b].documents, s.byName[a].documents), cmp.Compare(a, b))
	})
	top = []senderLine{}
	for _, name := range names[:min(len(names), sendersOnPage)] {
		line := senderLine{Name: name, Documents: s.byName[name].documents, Sums: []senderSum{}}
		for currency, one := range s.byName[name].sums {
			line.Sums = append(line.Sums, senderSum{currency, formatDecimal(&one.total)})
		}
		slices.SortFunc(line.Sums, func(a, b senderSum) int { return cmp.Compare(a.Currency, b.Currency) })
		top = append(top, line)
	}
	return top, s.unranked
}
