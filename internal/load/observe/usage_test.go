package observe

import (
	"testing"
	"time"
)

// TestAProcessThatIsGoneHasNoUsage: its time reads as none, which is less than it had.
func TestAProcessThatIsGoneHasNoUsage(t *testing.T) {
	m := &Meter{pid: 1, From: time.Now()}
	m.server.cpu = [2]float64{3, 0}
	if server, _ := m.Usage(10); server != nil {
		t.Errorf("its usage is %+v", *server)
	}
	m.server.cpu = [2]float64{3, 4}
	if server, _ := m.Usage(10); server == nil || server.CPUSeconds != 1 {
		t.Errorf("that of one that runs is %+v", server)
	}
}
