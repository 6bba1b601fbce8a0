package docket.peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.jdbc.core.BatchPreparedStatementSetter;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.support.Acknowledgment;
import org.springframework.stereotype.Component;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** One poll is one transaction and one batch of inserts; its offsets are acknowledged after the commit. */
@Component
class Listener {
    private static final String INSERT = """
            INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, opa_id, opa_version, service,
              labels, bundles, raw, source_topic, source_partition, source_offset, source_index)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?::jsonb, ?::jsonb, ?, ?, ?, 0) ON CONFLICT DO NOTHING""";

    private final JdbcTemplate jdbc;
    private final TransactionTemplate transaction;
    private final ObjectReader reader;

    Listener(JdbcTemplate jdbc, PlatformTransactionManager manager, ObjectMapper mapper) {
        this.jdbc = jdbc;
        this.transaction = new TransactionTemplate(manager);
        this.reader = mapper.readerFor(Decision.class);
    }

    private record Row(Decision decision, ConsumerRecord<byte[], byte[]> from) {}

    @KafkaListener(topics = "${peer.topic}")
    void store(List<ConsumerRecord<byte[], byte[]>> records, Acknowledgment acknowledgment) {
        List<Row> rows = new ArrayList<>(records.size());
        for (ConsumerRecord<byte[], byte[]> record : records) {
            rows.add(new Row(decode(record.value()), record));
        }
        transaction.executeWithoutResult(status -> jdbc.batchUpdate(INSERT, new BatchPreparedStatementSetter() {
            @Override
            public void setValues(PreparedStatement statement, int i) throws SQLException {
                fill(statement, rows.get(i));
            }

            @Override
            public int getBatchSize() {
                return rows.size();
            }
        }));
        acknowledgment.acknowledge();
    }

    private Decision decode(byte[] value) {
        try {
            return reader.readValue(value);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void fill(PreparedStatement statement, Row row) throws SQLException {
        Decision decision = row.decision();
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
        statement.setString(12, new String(row.from().value(), StandardCharsets.UTF_8));
        statement.setString(13, row.from().topic());
        statement.setInt(14, row.from().partition());
        statement.setLong(15, row.from().offset());
    }

    private static String json(JsonNode node) {
        return node == null || node.isNull() ? null : node.toString();
    }
}
