package recovery

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
)

// asked is a real client of an emulated archive in which n documents are registered.
func asked(t *testing.T, n int, r emulator.Readings) (*emulator.Server, *vaultapi.Client, []archive.RemoteID) {
	t.Helper()
	service, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "u", Secret: "s", Vaults: []emulator.Vault{{ID: "V"}}, Readings: r})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, service.Close()) })
	api, store, err := apicall.New(apicall.Config{BaseURL: "https://archive.example", Transport: service.Transport(),
		Auth: apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) { return "s", nil }}})
	kit.Must(t, err)
	c := vaultapi.New(vaultapi.Config{API: api, Store: store, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }})
	var numbers []archive.RemoteID
	for i := range n {
		id := archive.ID{6: 0x40, 8: 0x80, 15: byte(i + 1)}
		a, err := c.Register(t.Context(), "V", []archive.RegisterRequest{archive.RegisterRequest{ID: id, Metadata: fmt.Appendf(nil,
			`{"documentId":"N%d","documentDate":"2026-10-31T00:00:00Z","documentType":"Invoice"}`, i)}})
		kit.Must(t, err)
		numbers = append(numbers, a.Tickets[id].Remote)
	}
	return service, c, numbers
}

const unknownNumber archive.RemoteID = "46aa4caf-b373-41ed-bbfc-cfd535abf178"

// However the archive says that it does not know a number, it is absent, and the others are told.
func TestAskEach_I23_OneUnknownNumber(t *testing.T) {
	for _, status := range []int{400, 404, 422, 502} {
		for name, faults := range map[string]emulator.Faults{
			"Calm":            {},
			"ListIsForbidden": {Rules: []emulator.Rule{{Op: "status-list", Rate: 1, Fault: emulator.Fault{Kind: emulator.Status, Status: 403}}}},
		} {
			t.Run(fmt.Sprintf("%d/%s", status, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					service, c, numbers := asked(t, 2, emulator.Readings{UnknownBumID: status})
					kit.Must(t, service.SetFaults(faults))
					told, err := AskEach(t.Context(), c, "V", []archive.RemoteID{numbers[0], unknownNumber, numbers[1]})
					kit.Need(t, err == nil && len(told) == 3,
						"told = %v, err = %v, want no error, len(told) = 3", told, err)
					if told[0].Status != archive.WaitingForPackage || told[1].Status != archive.Absent || !told[1].ID.IsZero() || told[1].Remote != unknownNumber ||
						told[2].Remote != numbers[1] || told[2].ID.IsZero() {
						t.Errorf("%+v, want told[0].Status = archive.WaitingForPackage, told[1].Status = archive.Absent, told[1].ID.IsZero(), told[1].Remote = %v, told[2].Remote = %v, not told[2].ID.IsZero()", told, unknownNumber, numbers[1])
					}
				})
			})
		}
	}
}

// A number that cannot be asked about alone is looked up in the list.
func TestAskEach_I12_ListTellsOfOneThatCannotBeAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, c, numbers := asked(t, 1, emulator.Readings{})
		kit.Must(t, service.SetFaults(emulator.Faults{Questions: map[string]emulator.Fault{string(numbers[0]): {Kind: emulator.Status, Status: 502}}}))
		told, err := AskEach(t.Context(), c, "V", numbers)
		kit.Check(t, err == nil && told[0].Status == archive.WaitingForPackage && !told[0].ID.IsZero(),
			"%+v, %v, want no error, told[0].Status = archive.WaitingForPackage, not told[0].ID.IsZero()", told, err)
	})
}

// A fault that has passed makes nothing absent, and where the archive answers nothing about the vault, nothing is concluded.
func TestAskEach_I24_I32_FaultsOfTheService(t *testing.T) {
	for _, status := range []int{400, 404, 422, 502} {
		synctest.Test(t, func(t *testing.T) {
			service, c, numbers := asked(t, 1, emulator.Readings{})
			kit.Must(t, service.SetFaults(emulator.Faults{Hook: func(op string, n int) emulator.Fault {
				if op == "status" && n <= 4 || op == "status-list" { // a GET is repeated three times
					return emulator.Fault{Kind: emulator.Status, Status: status}
				}
				return emulator.Fault{}
			}}))
			told, err := AskEach(t.Context(), c, "V", numbers)
			kit.Check(t, status != 502 || err == nil && told[0].Status == archive.WaitingForPackage,
				"%d: %+v, %v", status, told, err)
			all := emulator.Rule{Rate: 1, Fault: emulator.Fault{Kind: emulator.Status, Status: status}}
			kit.Must(t, service.SetFaults(emulator.Faults{Rules: []emulator.Rule{all}}))
			if told, err := AskEach(t.Context(), c, "V", []archive.RemoteID{unknownNumber}); err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) {
				t.Errorf("%d everywhere: %+v, %v", status, told, err)
			}
		})
	}
}
