package present

import "time"

// The spans of a History.
const (
	HistoryDays   = 30
	HistoryMonths = 24
)

// History tells what was archived and rejected lately, how long archiving took, and which share of the included volume is used. Days
// and months are those of the configured time zone.
//
// Everything about the archive's successes comes from the ledger. The rejected folders and the delays come by way of the catalog: they
// can lack what was committed in the last seconds.
type History struct {
	Days   []DayCounts   // HistoryDays of them, the oldest first; the last is today
	Months []MonthCounts // HistoryMonths of them, the oldest first; the last is the current month

	Delays   []DelayCounts // from the shortest on; empty where Missing says why
	DelaysOf int           // how many documents Delays counts: the newest archived ones, DelaysAtMost at most, less the unmeasured

	Shares []VaultShare // by vault; with several vaults the customer as a whole comes first

	IsRejectedCut bool   // more folders were rejected than are counted: the oldest days and months tell fewer than there were
	Missing       string // why Rejected and Delays are not known; empty: they are known
	CatalogMade   int    // percent of the catalog that is made; 100: all of it
}

// DayCounts is what came to its end on one calendar day.
type DayCounts struct {
	Year  int
	Month time.Month
	Day   int

	Archived uint64 // documents that the archive archived on this day, by its own time; each counts once
	Rejected uint64 // folders that were taken on this day and are rejected, whether corrected since or not; 0 where History.Missing says why
}

// MonthCounts is what came to its end in one calendar month.
type MonthCounts struct {
	Year  int
	Month time.Month

	Archived uint64 // successes of the archive in this month, as the bill counts them: a document that it archived twice counts twice
	Rejected uint64 // folders that were taken in this month and are rejected, whether corrected since or not; 0 where History.Missing says why
}

// DelayCounts is how many documents took at least From and less than Below from taken to archived.
type DelayCounts struct {
	From, Below time.Duration // Below is 0 for the last one, which has no end
	Documents   uint64
}

// VaultShare is which share of the included volume of a year is used: the average document against the size that it may have.
type VaultShare struct {
	Vault    string // empty: all vaults of the customer
	Year     int
	Included int64 // bytes that the average document of the year may have

	Used     []MonthShare   // from the first month in which anything of known size was archived, up to the current one
	Forecast *ShareForecast // nil: too early to say
}

// MonthShare is the share that was used from the year's beginning to the end of a month, or until now.
type MonthShare struct {
	Month time.Month
	Share float64 // 1 is all that is included
}

// ShareForecast is the share on 31 December, if the rest of the year goes on as the last months did; the bounds are those of the bill.
type ShareForecast struct{ Share, Lowest, Highest float64 }
