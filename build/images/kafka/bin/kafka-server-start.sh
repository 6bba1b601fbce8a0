#!/bin/bash
# Starts a broker, a controller or both: kafka-server-start.sh server.properties [--override name=value]...
set -euo pipefail
export KAFKA_HEAP_OPTS=${KAFKA_HEAP_OPTS:--Xmx1G -Xms1G}
export KAFKA_LOG4J_OPTS=${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml}
exec "${0%/*}/kafka-run-class.sh" kafka.Kafka "$@"
