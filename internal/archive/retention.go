package archive

import "time"

// MaxRetention is the longest time, in years, for which the service keeps a document.
const MaxRetention = 15

// Retention is for how many years the service keeps a document by contract; zero: not known.
type Retention int

// Ended reports whether the retention of a document that was archived at that time is over. It ends on the same day of the year,
// so many years later; where that year has no 29 February, on 1 March. That whole day, in UTC, counts as after the end, because
// it is not specified at which hour a service removes a document. A retention that is not known never ends.
func (r Retention) Ended(archived, now time.Time) bool {
	if r <= 0 || archived.IsZero() {
		return false
	}
	y, m, d := archived.UTC().Date()
	return !now.Before(time.Date(y+int(r), m, d, 0, 0, 0, 0, time.UTC))
}
