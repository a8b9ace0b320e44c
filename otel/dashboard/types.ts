// What Grafana says a dashboard is, in its own types, made strict: the panels and
// queries of grafana.json must be of the kinds listed here, and have no field that
// Grafana does not know. ./check compiles this with the dashboard in the place of DASHBOARD.
import type * as grafana from '@grafana/schema';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';

// JSON has the values of enums and no names.
type Json<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Json<T[K]> } : T;

// A query to Prometheus, of which the package has no type.
interface Query extends grafana.DataQuery {
  datasource: { type: 'prometheus'; uid: '${datasource}' };
  editorMode: 'code';
  expr: string;
  legendFormat: string;
  range?: true;
  instant?: true;
}

type Of<Type extends string, Options, Custom> =
  Omit<grafana.Panel, 'type' | 'options' | 'targets' | 'fieldConfig'> & {
    type: Type;
    options: Options;
    targets: Query[];
    fieldConfig: { defaults: Omit<grafana.FieldConfig, 'custom'> & Custom; overrides: [] };
  };

type Panel =
  | grafana.RowPanel
  | Of<'timeseries', timeseries.Options, { custom: timeseries.FieldConfig }>
  | Of<'stat', stat.Options, {}>;

export const dashboard: Json<Omit<grafana.Dashboard, 'panels'> & { panels: Panel[] }> = DASHBOARD;
