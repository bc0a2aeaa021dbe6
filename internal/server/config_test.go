package server_test

import (
	"testing"

	"chancery/internal/base/fault"
	"chancery/internal/server"
)

func TestConfigurationIsHeldToItsBounds(t *testing.T) {
	t.Parallel()
	for setting, code := range map[string]string{
		"CHANCERY_AGENT_LIFETIME=24h": "", "CHANCERY_AGENT_LIFETIME=25h": "config_invalid",
		"CHANCERY_AGENT_SKEW=1m": "", "CHANCERY_AGENT_SKEW=61s": "config_invalid",
		"CHANCERY_LOG_FORMAT=json": "", "CHANCERY_LOG_FORMAT=xml": "config_invalid",
	} {
		if _, _, err := server.Configure(t.TempDir(), []string{setting}, nil); fault.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", setting, err, code)
		}
	}
}
