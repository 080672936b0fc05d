package main

import (
	"fmt"
	"log/slog"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"vaultd/internal/sanitize"
)

// notifier tells the service manager the state of vaultd. Without a service manager it does nothing.
type notifier struct {
	log *slog.Logger
}

// send sends lines to the service manager. A failure is logged and changes nothing: the work
// does not depend on the service manager. The environment is kept, for what is sent later.
func (n notifier) send(lines string) {
	if _, err := sd.SdNotify(false, lines); err != nil {
		n.log.Warn("service manager not reached", "err", err)
	}
}

func (n notifier) notifyReady(status string) {
	n.send(sd.SdNotifyReady + "\nSTATUS=" + sanitize.Text(status))
}

// extendStart asks for time before the start counts as failed, and says why. TimeoutStartSec
// of the unit does not count any more then.
func (n notifier) extendStart(by time.Duration, why string) {
	n.send(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=%s", by.Microseconds(), why))
}

func (n notifier) notifyStatus(text string) { n.send("STATUS=" + sanitize.Text(text)) }
func (n notifier) notifyReloading()         { n.send(sd.SdNotifyReloading + "\n" + sd.SdNotifyMonotonicUsec()) }
func (n notifier) notifyStopping()          { n.send(sd.SdNotifyStopping) }
func (n notifier) notifyWatchdog()          { n.send(sd.SdNotifyWatchdog) }

// watchdogTimeout returns after how long without a message the service manager restarts vaultd; 0: never.
func (n notifier) watchdogTimeout() time.Duration {
	after, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("watchdog not understood", "err", err)
	}
	return after
}
