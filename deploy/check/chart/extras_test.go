package chart

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

// TestExtras_AreValid: the additions of users are as valid as the rest, and each object has the common labels once.
func TestExtras_AreValid(t *testing.T) {
	t.Parallel()
	for id, r := range mustRender(t, "extras") {
		if _, custom := definitions[r.kind()]; !custom {
			errs, err := judge(r.text)
			for _, one := range errs {
				t.Errorf("%s: %v", id, one)
			}
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		if id == "ConfigMap/docket-more" {
			want(t, r.object, "kafka:9092", "data", "brokers")
			continue
		}
		want(t, r.object, "platform", "metadata", "labels", "team")
		want(t, r.object, "platform@example", "metadata", "annotations", "owner")
	}
}

func TestExtras_OwnAnnotationsStay(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, "extras")
	for id, annotation := range map[string][2]string{
		"Service/docket-collector-uploads": {"load-balancer", "internal"}, "Service/docket-desk-api": {"mesh", "no"}, "ConfigMap/docket-dashboard": {"folder", "docket"},
		"ServiceAccount/docket": {"role", "docket"}, "Job/docket-migration": {"helm.sh/hook", "pre-install,pre-upgrade"}, "Pod/docket-test": {"helm.sh/hook", "test"},
		"Ingress/docket-collector": {"nginx.ingress.kubernetes.io/backend-protocol", "HTTPS"},
	} {
		want(t, objects[id].object, annotation[1], "metadata", "annotations", annotation[0])
	}
	want(t, objects["PodMonitor/docket-consumer"].object, "prometheus", "metadata", "labels", "release")
	claim := at(objects["StatefulSet/docket-consumer"].object, "spec", "volumeClaimTemplates", 0)
	want(t, claim, nil, "metadata", "labels", "team") // it cannot be changed later
	want(t, objects["StatefulSet/docket-consumer"].object, nil, "spec", "selector", "matchLabels", "team")
}

// TestExtras_OpenShiftChoosesUsers: null takes a user away, and the other rights stay as they are.
func TestExtras_OpenShiftChoosesUsers(t *testing.T) {
	t.Parallel()
	for id, r := range mustRender(t, "extras") {
		pod := podOf(r)
		if r.kind() == "Pod" {
			pod = r.object
		}
		if pod == nil {
			continue
		}
		context, _ := at(pod, "spec", "securityContext").(map[string]any)
		for _, gone := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
			if _, there := context[gone]; there {
				t.Errorf("%s: %s is %v", id, gone, context[gone])
			}
		}
		want(t, context, true, "runAsNonRoot")
		want(t, at(pod, "spec", "containers", 0), true, "securityContext", "readOnlyRootFilesystem")
	}
}

func TestExtras_ContainersAndVariables(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, "extras")
	spec := podOf(objects["StatefulSet/docket-consumer"])["spec"]
	want(t, spec, "consumer", "containers", 0, "name")
	want(t, spec, "proxy", "containers", 0, "envFrom", 0, "configMapRef", "name")
	want(t, spec, "sidecar", "containers", 1, "name")
	want(t, spec, "wait", "initContainers", 0, "name")
	want(t, podOf(objects["StatefulSet/docket-replayer"])["spec"], nil, "initContainers")
}

// helm test sees what the consumer sees: without its authority the check fails where the consumer works.
func TestExtras_TestPodHasThoseOfTheConsumer(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, "extras")
	for id, pod := range map[string]any{"consumer": podOf(objects["StatefulSet/docket-consumer"]), "test": objects["Pod/docket-test"].object} {
		has := func(of, name string, path ...any) {
			t.Helper()
			all, _ := at(pod, append([]any{"spec"}, path...)...).([]any)
			if !slices.ContainsFunc(all, func(one any) bool { return at(one, "name") == name }) {
				t.Errorf("%s has no %s %s", id, of, name)
			}
		}
		has("variable", "HTTPS_PROXY", "containers", 0, "env")
		has("mount", "postgres-ca", "containers", 0, "volumeMounts")
		has("volume", "postgres-ca", "volumes")
	}
}

func TestExtras_CollectorScalesAndIsReached(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, "extras")
	deployment, scaler, ingress := objects["Deployment/docket-collector"].object, objects["HorizontalPodAutoscaler/docket-collector"].object, objects["Ingress/docket-collector"].object
	want(t, deployment, nil, "spec", "replicas") // two that say how many there are would undo each other
	want(t, scaler, "docket-collector", "spec", "scaleTargetRef", "name")
	want(t, scaler, float64(60), "spec", "metrics", 0, "resource", "target", "averageUtilization")
	for i, host := range []string{"logs.example", "logs.other.example"} {
		rule := at(ingress, "spec", "rules", i)
		want(t, rule, host, "host")
		want(t, rule, "/logs", "http", "paths", 0, "path")
		want(t, rule, "docket-collector-uploads", "http", "paths", 0, "backend", "service", "name")
	}
	want(t, objects["Service/docket-collector-uploads"].object, at(ingress, "spec", "rules", 0, "http", "paths", 0, "backend", "service", "port", "name"), "spec", "ports", 0, "name")
	_, _, err := render(load(t), chartutil.Values{"collector": map[string]any{"enabled": true, "tlsSecretName": "s", "tokensSecretName": "s", "autoscaling": map[string]any{"enabled": true, "minReplicas": 11}}})
	if err == nil || !strings.Contains(err.Error(), "collector.autoscaling.minReplicas (11) is more than maxReplicas (10)") {
		t.Errorf("got %v", err)
	}
}

// TestShards_EveryProgramAndTheScaler: each program has the ranges, and the scaler looks at the groups of the shard.
func TestShards_EveryProgramAndTheScaler(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, "extras")
	programs := 0
	for id, r := range objects {
		if podOf(r) == nil {
			continue
		}
		programs++
		if e := env(r); e["DOCKET_SHARDS"] != "a=0-3,b=4-7,a=8-11" || e["DOCKET_SHARD"] != "b" {
			t.Errorf("%s: %v", id, e)
		}
	}
	if programs != 5 {
		t.Errorf("%d programs", programs)
	}
	for i, group := range []string{"docket-b", "docket-b-urgent", "docket-late-b"} {
		trigger := at(objects["ScaledObject/docket-consumer"].object, "spec", "triggers", i, "metadata")
		want(t, trigger, group, "consumerGroup")
		want(t, trigger, "4-7", "partitionLimitation")
	}
	for id, r := range mustRender(t, "default") {
		if strings.Contains(r.text, "DOCKET_SHARD") {
			t.Errorf("%s names shards", id)
		}
	}
	want(t, mustRender(t, "nospool")["ScaledObject/docket-consumer"].object, nil, "spec", "triggers", 0, "metadata", "partitionLimitation")
}

// TestShards_ScalerCountsTheirPartitions: the other partitions count as lag in the groups of the shard.
func TestShards_ScalerCountsTheirPartitions(t *testing.T) {
	t.Parallel()
	for partitions, ranges := range map[string][]any{
		"0-3,8-11":  {"a=0-3", "b=4-7", "a=8-11"},
		"0":         {"aa=1-3", "a=0", "b=4-7"},
		"10-20,1,2": {"a=10-20", "a=1", "a=2", "a-b=0", "b=3-9"},
		"5-5":       {"a=5-5", "b=0-4"},
		"":          {"b=0-4"},
	} {
		v := values(t, "extras")
		v["shards"] = map[string]any{"name": "a", "ranges": ranges}
		objects, _, err := render(load(t), v)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			var wanted any
			if partitions != "" {
				wanted = partitions
			}
			want(t, objects["ScaledObject/docket-consumer"].object, wanted, "spec", "triggers", i, "metadata", "partitionLimitation")
		}
	}
}

// TestTest_ChecksAsTheConsumer: helm test has the settings and Secrets of the consumer, and the spool of nobody.
func TestTest_ChecksAsTheConsumer(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, "everything")
	pod := objects["Pod/docket-test"].object
	container := at(pod, "spec", "containers", 0)
	want(t, container, []any{"/usr/local/bin/docket", "consume", "check"}, "command")
	settings := map[string]string{}
	for _, one := range at(container, "env").([]any) {
		value, _ := at(one, "value").(string)
		settings[at(one, "name").(string)] = value
	}
	of := env(objects["StatefulSet/docket-consumer"])
	for _, name := range []string{"DOCKET_KAFKA_BROKERS", "DOCKET_LANES", "DOCKET_DATABASE_URL_FILE", "DOCKET_KAFKA_SASL_PASSWORD_FILE", "DOCKET_LIMIT_ROWS", "DOCKET_LIMIT_LOW_ROWS", "DOCKET_LIMIT_BURST", "DOCKET_LIMIT_CALENDAR", "DOCKET_REDIS_URL_FILE"} {
		if settings[name] == "" || settings[name] != of[name] {
			t.Errorf("%s is %q, and %q in the consumer", name, settings[name], of[name])
		}
	}
	var redis []any
	for _, volume := range at(pod, "spec", "volumes").([]any) {
		if at(volume, "name") == "redis" {
			redis = append(redis, at(volume, "secret", "secretName"))
		}
	}
	for _, mount := range at(container, "volumeMounts").([]any) {
		if at(mount, "name") == "redis" {
			redis = append(redis, at(mount, "mountPath"))
		}
	}
	if !slices.Equal(redis, []any{"docket-redis", "/etc/docket/redis"}) {
		t.Errorf("the Secret of Redis is mounted as %v", redis)
	}
	if settings["DOCKET_SPOOL_DIR"] != "" {
		t.Errorf("it looks at the spool %q", settings["DOCKET_SPOOL_DIR"])
	}
	if _, err := yaml.Marshal(pod); err != nil {
		t.Error(err)
	}
}
