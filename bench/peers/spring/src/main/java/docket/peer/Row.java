package docket.peer;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** A decision, the record that it came in, and the statement that stores both. */
record Row(Decision decision, ConsumerRecord<byte[], byte[]> from) {
    static final String INSERT = """
            INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
              labels, bundles, raw, source_topic, source_partition, source_offset, source_index)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?::jsonb, ?::jsonb, ?, ?, ?, 0) ON CONFLICT DO NOTHING""";

    void fill(PreparedStatement statement) throws SQLException {
        statement.setString(1, decision.id());
        statement.setObject(2, decision.timestamp());
        statement.setString(3, decision.path());
        statement.setObject(4, decision.allowed(), Types.BOOLEAN);
        statement.setString(5, decision.requestedBy());
        statement.setObject(6, decision.requestId(), Types.BIGINT);
        statement.setString(7, decision.label("id"));
        statement.setString(8, decision.label("version"));
        statement.setString(9, decision.service());
        statement.setString(10, json(decision.labels()));
        statement.setString(11, json(decision.bundles()));
        statement.setString(12, new String(from.value(), StandardCharsets.UTF_8));
        statement.setString(13, from.topic());
        statement.setInt(14, from.partition());
        statement.setLong(15, from.offset());
    }

    private static String json(JsonNode node) {
        return node == null || node.isNull() ? null : node.toString();
    }
}
